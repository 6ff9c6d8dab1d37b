"""How long a request may have to wait, and what high priority changes of that."""

from __future__ import annotations

import re

import pytest

from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import route, tenant
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.held import Held, busy, narrow, slow, waiting
from tests.gateway_cpp.blackbox.raw_http import Response, chat

HIGH = tenant("vip", keys=["sesame"], priority=routes.PRIORITY_CLASS_HIGH)
BEARER = "Authorization: Bearer sesame\r\n"


async def change(system: System, limited: routes.DeploymentRoute) -> None:
    """Other limits are in force when this returns."""
    version = await system.control.publish([limited], [route(system.replicas[0])], tenants=[HIGH])
    await system.has_routes(version)


async def learnt(start: Start, limited: routes.DeploymentRoute) -> tuple[System, Held]:
    """A gateway that has seen how long a call takes; the next ones are held."""
    system = await start(scripts=(slow(0.1),), deployment=limited, tenants=[HIGH])
    assert (await system.ask(chat())).status == 200
    held = Held()
    system.replicas[0].script = held
    return system, held


def wait_of(answer: Response) -> int:
    """The wait that a request was refused for, in milliseconds."""
    assert answer.status == 429, answer
    assert answer.headers["x-penstock-drop-reason"] == "wait_exceeded"
    told = re.search(r"it would wait (\d+) ms", answer.error["message"])
    assert told
    return int(told[1])


async def test_a_request_that_would_wait_too_long_is_told_how_long_and_how_long_it_may(
    start: Start,
) -> None:
    system, held = await learnt(start, narrow(wait_budget_ms=1))
    async with busy(system) as first:
        for stream in (False, True):
            answer = await system.ask(chat(stream=stream))
            assert wait_of(answer) > 1
            assert "wait_budget_ms is 1;" in answer.error["message"]
            assert answer.error["type"] == "rate_limit_error"
            assert answer.error["code"] == "overloaded"
            assert answer.headers["x-should-retry"] == "true"
            seconds, millis = (int(answer.headers[h]) for h in ("retry-after", "retry-after-ms"))
            assert 1 <= seconds <= 60
            assert 1000 * (seconds - 1) < millis <= 1000 * seconds
        held.let_go()
        assert (await first.response()).status == 200
    assert len(system.replicas[0].calls) == 2
    assert await system.drops("wait_exceeded") == 2


async def test_a_place_that_is_free_is_given_whatever_the_budget(start: Start) -> None:
    system, held = await learnt(start, narrow(wait_budget_ms=1))
    held.let_go(3)
    for _ in range(3):
        assert (await system.ask(chat())).status == 200


async def test_high_priority_may_wait_a_fifth_longer(start: Start) -> None:
    system, held = await learnt(start, narrow(wait_budget_ms=1))
    async with busy(system):
        wait = wait_of(await system.ask(chat()))
        budget = wait * 10 // 11
        assert budget < wait <= budget + budget // 5
        await change(system, narrow(wait_budget_ms=budget))
        assert wait_of(await system.ask(chat())) >= wait
        async with waiting(system, chat(BEARER)) as (client,):
            held.let_go(2)
            answer = await client.response()
    assert answer.status == 200
    assert answer.headers["x-penstock-estimated-wait-ms"] == str(wait)


async def test_high_priority_is_told_its_own_budget(start: Start) -> None:
    system, _ = await learnt(start, narrow(wait_budget_ms=10))
    async with busy(system):
        for headers, budget in (("", 10), (BEARER, 12)):
            answer = await system.ask(chat(headers))
            assert wait_of(answer) > budget
            assert f"wait_budget_ms is {budget};" in answer.error["message"]


async def test_high_priority_finds_a_fifth_more_places_in_the_queue(start: Start) -> None:
    held = Held()
    system = await start(scripts=(held,), deployment=narrow(max_queued=3), tenants=[HIGH])
    async with busy(system), waiting(system, chat(), chat(), chat()):
        full = await system.ask(chat())
        assert full.headers["x-penstock-drop-reason"] == "queue_full"
        assert "max_queued is 3;" in full.error["message"]
        async with system.client() as client:
            await client.send(chat(BEARER))
            await system.has_queued(4)
            full = await system.ask(chat(BEARER))
            assert full.headers["x-penstock-drop-reason"] == "queue_full"
            assert "max_queued is 4;" in full.error["message"]
            held.let_go(5)
            assert (await client.response()).status == 200


@pytest.mark.parametrize("asks", ["low", "normal"])
async def test_who_asks_for_less_priority_than_it_has_waits_no_longer(
    start: Start, asks: str
) -> None:
    system, _ = await learnt(start, narrow(wait_budget_ms=10))
    async with busy(system):
        answer = await system.ask(chat(f"{BEARER}x-penstock-priority: {asks}\r\n"))
        assert "wait_budget_ms is 10;" in answer.error["message"]


async def test_high_priority_has_no_more_of_any_other_limit(start: Start) -> None:
    limited = narrow(max_completion_tokens=10, max_n=5)
    system = await start(deployment=limited, tenants=[HIGH])
    for fields in ({"max_tokens": 11}, {"n": 6}):
        for headers in ("", BEARER):
            answer = await system.ask(chat(headers, **fields))
            assert answer.headers["x-penstock-drop-reason"] == "token_budget_exceeded"
