"""Those that wait, or might kill engines, when a fleet goes: who takes the next rung, who not."""

from __future__ import annotations

import pytest

from penstock.v1 import inference_pb2 as inference
from tests.fakes.fake_control import deployment
from tests.fakes.fake_replica import FakeCall, hello
from tests.gateway_cpp.blackbox.conftest import Start
from tests.gateway_cpp.blackbox.fleets import (
    breaks_off,
    engine_dies,
    fleet,
    full,
    is_from,
    laddered,
)
from tests.gateway_cpp.blackbox.held import waiting
from tests.gateway_cpp.blackbox.raw_http import chat

STARTING = inference.REPLICA_STATE_STARTING
TO_BIG = {"": ["fallback:big"]}


async def test_who_waits_when_the_last_replica_goes_takes_the_next_rung(start: Start) -> None:
    mini = laddered(max_queued=10)
    async with full(start, mini=mini) as (made, _), waiting(made.system, chat(), chat()) as waits:
        await made.publish(mini, state=STARTING)
        for client in waits:
            is_from(await client.response(), "big", "no_ready_replica")


async def test_who_waits_stays_where_no_rung_would_take_it(start: Start) -> None:
    mini, big = laddered(TO_BIG, max_queued=10), deployment("big")
    big.budget_used_up = True
    async with (
        full(start, mini=mini, big=big) as (made, held),
        waiting(made.system, chat()) as (client,),
    ):
        await made.publish(mini, big=big, state=STARTING)
        assert (await made.system.ask(chat())).status == 503, "newcomers are refused"
        await made.publish(mini, big=big)
        held.let_go(1000)
        answer = await client.response()
        assert answer.status == 200
        assert answer.headers["x-penstock-backend"] == "mini"
        assert "x-penstock-degraded" not in answer.headers


async def test_what_an_engine_died_of_goes_to_no_other_though_its_own_is_gone(
    start: Start,
) -> None:
    mini = laddered(TO_BIG)
    made = await fleet(start, mini=mini, scripts=(engine_dies, hello, hello))
    assert (await made.system.ask(chat())).error["code"] == "engine_dead"
    await made.publish(mini, state=STARTING)
    answer = await made.system.ask(chat())
    assert (answer.status, answer.headers["x-penstock-drop-reason"]) == (503, "model_loading")
    is_from(await made.system.ask(chat(max_tokens=7)), "big", "model_loading")
    assert len(made.replicas[1].calls) == 1


@pytest.mark.parametrize("ladder", [{}, TO_BIG])
async def test_an_error_is_nobodys_degraded_answer(
    start: Start, ladder: dict[str, list[str]]
) -> None:
    async def trimmed_and_broken(call: FakeCall) -> None:
        call.facts = inference.Head(trimmed_messages=3, trimmed_tokens=812)
        await breaks_off(call)

    mini = laddered(ladder)
    mini.trims = True
    scripts = (trimmed_and_broken, breaks_off, hello)
    made = await fleet(start, mini=mini, scripts=scripts)
    answer = await made.system.ask(chat())
    assert answer.status >= 500
    assert "x-penstock-degraded" not in answer.headers
    assert "x-penstock-trimmed" not in answer.headers
    assert await made.system.metric("penstock_gateway_degraded_total") == 0
