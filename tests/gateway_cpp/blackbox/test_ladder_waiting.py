"""Those that wait, or might kill engines, when a fleet goes: who takes the next rung, who not."""

from __future__ import annotations

import hashlib

import pytest

from penstock.v1 import inference_pb2 as inference
from penstock.v1 import suspects_pb2 as suspects
from tests.fakes.fake_control import deployment, tenant
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
from tests.gateway_cpp.blackbox.held import Held, busy, slow, waiting
from tests.gateway_cpp.blackbox.raw_http import chat
from tests.gateway_cpp.blackbox.test_wait_budget import wait_of

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


async def test_who_waits_with_a_prompt_that_was_cut_takes_the_next_rung_too(start: Start) -> None:
    limits = {"max_queued": 10, "max_prompt_tokens": 20}
    mini = laddered({"": ["trim", "fallback:big"]}, **limits)
    made = await fleet(start, mini=mini)
    for _ in range(32):  # by then it is known how many bytes a token has
        assert (await made.system.ask(chat())).status == 200
    held = Held()
    made.replicas[0].script = held
    long = chat(messages=[{"role": "user", "content": "word " * 1000}])
    async with busy(made.system), waiting(made.system, long) as (client,):
        await made.publish(mini, state=STARTING)
        is_from(await client.response(), "big", "no_ready_replica")
        held.let_go(1000)


async def test_a_suspect_to_whom_no_rung_is_open_may_wait_as_long_as_the_budget_says(
    start: Start,
) -> None:
    maybe_deadly = chat(user="somebody")
    body = maybe_deadly.split(b"\r\n\r\n", 1)[1]
    suspect = suspects.Suspect(
        fingerprint=hashlib.sha256(b"\0/v1/chat/completions\0" + body).digest(),
        deaths=[suspects.EngineDeath(replica_id="gone")],
        until_ms=4_000_000_000_000,
    )
    house = [tenant("house", keys=["house"], degrade_never=True)]
    made = await fleet(
        start,
        mini=laddered(TO_BIG, max_queued=10, wait_budget_ms=1),
        scripts=(slow(0.1), hello, hello),
        tenants=house,
    )
    assert (await made.system.ask(chat())).status == 200
    held = Held()
    made.replicas[0].script = held
    async with busy(made.system):
        is_from(await made.system.ask(chat()), "big", "wait_exceeded")
        wait = wait_of(await made.system.ask(chat("Authorization: Bearer house\r\n")))
        longer = laddered(TO_BIG, max_queued=10, wait_budget_ms=wait * 115 // 100)
        await made.publish(longer, tenants=house, suspects=[suspect])
        is_from(await made.system.ask(chat()), "big", "wait_exceeded")
        async with waiting(made.system, maybe_deadly) as (client,):
            held.let_go(1000)
            assert (await client.response()).headers["x-penstock-backend"] == "mini"


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
