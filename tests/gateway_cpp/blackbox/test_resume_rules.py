"""Which answers go on: what engines die of costs no more of them than before."""

from __future__ import annotations

from tests.fakes.fake_replica import hello
from tests.fakes.resumable import answer, breaking, failing, saying
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import chat
from tests.gateway_cpp.blackbox.test_resumed_streams import (
    Breaks,
    alike,
    asked,
    is_told,
    resumes_of,
)

crashed = failing("engine_dead")
killed = failing("engine_killed")
WHOLE = answer(6)


def calls_of(system: System) -> int:
    """How many calls the replicas had."""
    return sum(len(replica.calls) for replica in system.replicas)


async def test_a_stream_that_engines_die_of_costs_two_of_them(start: Start) -> None:
    poison = breaking(WHOLE, 3, crashed)
    system = await alike(start, poison, poison, poison, poison)
    is_told(await system.ask(asked()))
    assert calls_of(system) == 2
    assert (await system.ask(asked())).error["code"] == "quarantined"


async def test_a_unary_answer_that_engines_die_of_costs_two_of_them(start: Start) -> None:
    system = await alike(start, crashed, crashed, crashed)
    told = await system.ask(chat(user="poison"))
    assert (told.status, told.error["code"]) == (503, "engine_dead")
    assert calls_of(system) == 2
    assert (await system.ask(chat(user="poison"))).error["code"] == "quarantined"


async def test_a_unary_answer_whose_engine_is_killed_is_made_once_more(start: Start) -> None:
    system = await alike(start, killed, hello)
    assert (await system.ask(chat())).status == 200
    assert calls_of(system) == 2
    assert resumes_of(system) == []


async def test_an_old_answer_goes_on_at_once_after_a_crash(start: Start) -> None:
    whole = answer(40)
    system = await alike(start, breaking(whole, 36, crashed), saying(whole))
    assert (await system.ask(asked())).body == whole.body
    assert await system.metric("penstock_gateway_resumes_total", reason="crash") == 1


async def test_a_client_that_leaves_in_the_pause_leaves_nothing(start: Start) -> None:
    breaks = Breaks()
    system = await alike(start, breaking(WHOLE, 3, breaks))
    async with system.client() as client:
        await client.send(asked())
        assert (await client.head())[0] == 200
        assert await client.chunk()
        await breaks.off()
        await until(lambda: system.gateway.find_log("replica marked down"), "its engine is gone")
    await until(lambda: system.gateway.count_log("request settled") == 2, "it, too, is settled")
    left = await system.metric("penstock_gateway_resumes_total", outcome="client_left")
    told = await system.metric("penstock_gateway_resumes_total", outcome="told")
    assert left + told == 1
    assert await system.metric("penstock_gateway_in_flight") == 0
