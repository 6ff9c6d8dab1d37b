"""Requests that wait for a replica: their order, what they are told, and how their wait ends."""

from __future__ import annotations

import asyncio

import pytest

from penstock.v1 import inference_pb2 as inference
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import route, tenant
from tests.fakes.fake_replica import hello
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.held import Held, busy, narrow, waiting
from tests.gateway_cpp.blackbox.raw_http import Response, chat

KEY = "Authorization: Bearer sesame\r\n"
GONE = inference.REPLICA_STATE_DRAINING


async def test_those_who_wait_go_by_priority_and_then_in_the_order_they_came(
    start: Start,
) -> None:
    high = tenant(keys=["sesame"], priority=routes.PRIORITY_CLASS_HIGH)
    held = Held()
    system = await start(scripts=(held,), deployment=narrow(), tenants=[high])

    def ranked(name: str, priority: str) -> bytes:
        return chat(f"{KEY}x-penstock-priority: {priority}\r\n", user=name)

    async with (
        busy(system),
        waiting(
            system,
            ranked("first", "normal"),
            ranked("second", "normal"),
            ranked("high", "high"),
        ) as clients,
    ):
        held.let_go(4)
        for client in clients:
            assert (await client.response()).status == 200
    calls = system.replicas[0].calls[1:]
    assert [call.json["user"] for call in calls] == ["high", "first", "second"]
    assert [call.request.priority for call in calls] == [-1, 0, 0]


async def test_a_class_above_the_tenants_own_is_not_granted(start: Start) -> None:
    system = await start(tenants=[tenant(keys=["sesame"], priority=routes.PRIORITY_CLASS_LOW)])
    assert (await system.ask(chat(KEY + "x-penstock-priority: high\r\n"))).status == 200
    assert system.replicas[0].calls[0].request.priority == 1


async def test_tenants_that_wait_take_turns(start: Start) -> None:
    both = [tenant("many", keys=["many"]), tenant("few", keys=["few"])]
    held = Held()
    system = await start(scripts=(held,), deployment=narrow(), tenants=both)

    def of(name: str) -> bytes:
        return chat(f"Authorization: Bearer {name}\r\n", user=name)

    waits = [of("many")] * 4 + [of("few")] * 2
    async with busy(system, of("many")), waiting(system, *waits) as clients:
        held.let_go(7)
        for client in clients:
            assert (await client.response()).status == 200
    order = [call.json["user"] for call in system.replicas[0].calls[1:]]
    assert order.index("few") <= 1
    assert "few" in order[2:4]


async def test_a_client_that_leaves_the_queue_frees_its_place_at_once(start: Start) -> None:
    held = Held()
    system = await start(scripts=(held,), deployment=narrow(max_queued=1))
    async with busy(system):
        async with waiting(system, chat()) as (client,):
            assert (await system.ask(chat())).status == 429
            client.leave()
            await system.has_queued(0)
        assert await system.drops("client_gone") == 1
        async with waiting(system, chat(user="next")) as (client,):
            held.let_go(2)
            assert (await client.response()).status == 200
    assert [call.json.get("user") for call in system.replicas[0].calls] == [None, "next"]


async def test_those_who_wait_are_served_by_a_replica_that_comes(start: Start) -> None:
    held = Held()
    system = await start(scripts=(held, hello), deployment=narrow())
    first, second = system.replicas
    version = await system.control.publish([narrow()], [route(first)])
    await system.has_routes(version)
    async with busy(system), waiting(system, chat(), chat()) as clients:
        version = await system.control.publish([narrow()], [route(first), route(second)])
        for client in clients:
            assert (await client.response()).status == 200
        assert len(second.calls) == 2


async def test_those_who_wait_stay_when_a_replica_drains_and_go_to_the_next(
    start: Start,
) -> None:
    held = Held()
    system = await start(scripts=(held, hello), deployment=narrow())
    first, second = system.replicas
    await system.has_routes(await system.control.publish([narrow()], [route(first)]))
    async with busy(system), waiting(system, chat(), chat()) as clients:
        draining = route(first, state=GONE)
        await system.has_routes(await system.control.publish([narrow()], [draining]))
        await system.has_queued(2)
        await system.control.publish([narrow()], [draining, route(second)])
        for client in clients:
            assert (await client.response()).status == 200
        assert len(second.calls) == 2


async def told(system: System, reason: str) -> Response:
    """The first answer with that reason; whoever asks before is told 503 and when to come back."""
    async with asyncio.timeout(20):
        while True:
            answer = await system.ask(chat())
            assert answer.status == 503
            assert 1 <= int(answer.headers["retry-after"]) <= 60
            assert 1000 <= int(answer.headers["retry-after-ms"]) <= 60_000
            assert answer.headers["x-should-retry"] == "true"
            if answer.headers["x-penstock-drop-reason"] == reason:
                return answer


@pytest.mark.parametrize(
    ("availability", "reason", "code"),
    [
        (routes.AVAILABILITY_SERVING, "no_ready_replica", "overloaded"),
        (routes.AVAILABILITY_LOADING, "model_loading", "model_loading"),
    ],
)
async def test_when_the_only_replica_is_lost_newcomers_are_told_at_once_and_who_waits_stays(
    start: Start, availability: routes.Availability, reason: str, code: str
) -> None:
    mini = narrow()
    mini.availability = availability
    held = Held()
    system = await start(scripts=(held,), deployment=mini)
    (replica,) = system.replicas
    async with busy(system) as first, waiting(system, chat(), chat(stream=True)) as clients:
        await replica.die()
        lost = await first.response()  # the replica may have been at work on it
        assert (lost.status, lost.error["code"]) == (502, "upstream_error")
        assert (await told(system, reason)).error["code"] == code
        await system.has_queued(2)
        held.let_go(2)
        await replica.start_again()
        for client in clients:
            assert (await client.response()).status == 200


async def test_those_who_wait_for_a_lost_replica_wait_until_their_deadline(start: Start) -> None:
    system = await start(scripts=(Held(),), deployment=narrow(queue_deadline_ms=4000))
    async with busy(system) as first, waiting(system, chat(), chat(stream=True)) as clients:
        await system.replicas[0].die()
        assert (await first.response()).status == 502
        for client in clients:
            answer = await client.response()
            assert answer.status == 408
            assert answer.headers["x-penstock-drop-reason"] == "queue_deadline"
            assert answer.headers["x-should-retry"] == "true"
            assert "retry-after" in answer.headers
    await system.has_queued(0)


async def test_a_deployment_that_is_deleted_leaves_nobody_waiting(start: Start) -> None:
    system = await start(scripts=(Held(),), deployment=narrow())
    async with busy(system), waiting(system, chat(), chat(stream=True)) as clients:
        await system.control.publish([], [])
        for client in clients:
            answer = await client.response()
            assert answer.status == 404
            assert answer.error["code"] == "model_not_found"
    await system.has_queued(0)


async def test_the_estimate_of_a_wait_is_told_with_the_answer(start: Start) -> None:
    held = Held()
    system = await start(scripts=(held,), deployment=narrow())
    held.let_go(3)
    for _ in range(3):
        answer = await system.ask(chat())
        assert answer.headers["x-penstock-estimated-wait-ms"] == "0"
    async with busy(system) as first, waiting(system, chat()) as (second,):
        held.let_go(2)
        assert (await first.response()).headers["x-penstock-queue-ms"] == "0"
        answer = await second.response()
        assert answer.headers["x-penstock-estimated-wait-ms"].isdigit()
        assert int(answer.headers["x-penstock-queue-ms"]) > 0
