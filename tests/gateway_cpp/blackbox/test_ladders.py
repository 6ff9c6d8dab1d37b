"""Down the ladder of a deployment that cannot answer: who may, who is asked, what is told."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from penstock.v1 import suspects_pb2 as suspects
from tests.fakes.fake_control import deployment, tenant
from tests.fakes.fake_replica import FakeCall, Script, delta, hello, refuse
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start
from tests.gateway_cpp.blackbox.fleets import (
    breaks_off,
    engine_dies,
    failing,
    fleet,
    full,
    is_from,
    laddered,
    too_long,
)
from tests.gateway_cpp.blackbox.held import Held, busy, slow, waiting
from tests.gateway_cpp.blackbox.raw_http import chat
from tests.gateway_cpp.blackbox.test_wait_budget import wait_of
from tests.gateway_cpp.blackbox.test_whose_request import line_of

TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {}}}]


@pytest.mark.parametrize(
    "breaks", [failing(500, "internal_error"), too_long, refuse(503, "overloaded", retry=True)]
)
async def test_a_rung_that_breaks_before_its_first_event_is_followed_by_the_next(
    start: Start, breaks: Script
) -> None:
    async with full(start, answers=(breaks, hello)) as (made, _):
        for stream in (False, True):
            answer = await made.system.ask(chat(stream=stream))
            is_from(answer, "canned", "queue_full")


async def test_an_answer_that_nobody_has_seen_is_made_by_the_next_where_it_breaks(
    start: Start,
) -> None:
    async with full(start, answers=(breaks_off, hello)) as (made, _):
        is_from(await made.system.ask(chat()), "canned", "queue_full")


async def test_a_stream_that_has_begun_ends_truthfully_where_it_breaks(start: Start) -> None:
    seen = asyncio.Event()

    async def breaks(call: FakeCall) -> None:
        await call.send(delta("Hel"))
        await seen.wait()
        await failing(500, "internal_error")(call)

    async with full(start, answers=(breaks, hello)) as (made, _), made.system.client() as client:
        await client.send(chat(stream=True))
        _, headers = await client.head()
        assert headers["x-penstock-backend"] == "big"
        assert await client.chunk() == delta("Hel")
        seen.set()
        assert b'"code":"internal_error"' in (await client.chunk() or b"")
        assert await client.chunk() is None
        assert not made.replicas[2].calls


async def test_where_no_rung_is_left_the_first_refusal_is_told(start: Start) -> None:
    broken = failing(500, "internal_error")
    async with full(start, answers=(broken, broken)) as (made, _):
        answer = await made.system.ask(chat())
        assert answer.status == 429
        assert answer.headers["x-penstock-drop-reason"] == "queue_full"
        assert answer.headers["x-should-retry"] == "true"
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        for name in ("x-penstock-backend", "x-penstock-degraded", "x-penstock-replica"):
            assert name not in answer.headers
        assert all(len(replica.calls) == 1 for replica in made.replicas)
        degraded = await made.system.metric("penstock_gateway_degraded_total")
        assert degraded == 0


@pytest.mark.parametrize(
    ("headers", "answered"),
    [
        ("", True),
        ("x-penstock-degrade: allow\r\n", True),
        ("x-penstock-degrade: never\r\n", False),
        ("Authorization: Bearer house\r\n", False),
        ("Authorization: Bearer house\r\nx-penstock-degrade: allow\r\n", False),
    ],
)
async def test_a_client_or_its_tenant_may_forbid_it(
    start: Start, headers: str, answered: bool
) -> None:
    house = tenant("house", keys=["house"], degrade_never=True)
    async with full(start, tenants=[house]) as (made, _):
        answer = await made.system.ask(chat(headers))
        assert answer.status == (200 if answered else 429)
        assert len(made.replicas[1].calls) == (1 if answered else 0)


async def test_where_the_head_says_no_more_whoever_may_use_the_deployment_may_use_its_fallbacks(
    start: Start,
) -> None:
    acme = tenant("acme", keys=["sesame"], models=["mini"])
    async with full(start, tenants=[acme]) as (made, _):
        key = "Authorization: Bearer sesame\r\n"
        is_from(await made.system.ask(chat(key)), "big", "queue_full")
        assert (await made.system.ask(chat(key, model="big"))).status == 403


@pytest.mark.parametrize(
    ("models", "backend"),
    [(["mini"], None), (["mini", "canned"], "canned"), (["mini", "big"], "big"), ([], "big")],
)
async def test_rungs_outside_a_tenants_list_are_passed_over(
    start: Start, models: list[str], backend: str | None
) -> None:
    acme = tenant("acme", keys=["sesame"], models=models, fallbacks_listed=True)
    async with full(start, tenants=[acme]) as (made, _):
        answer = await made.system.ask(chat("Authorization: Bearer sesame\r\n"))
        if backend:
            return is_from(answer, backend, "queue_full")
        assert answer.status == 429
        assert b"canned" not in answer.body
        line = await line_of(made.system, answer)
        assert "big=not_allowed" in line["left"]
        assert not any(replica.calls for replica in made.replicas[1:])


async def test_who_calls_no_tools_is_passed_over_by_a_request_that_brings_some(
    start: Start,
) -> None:
    big = deployment("big")
    big.without_tools = True
    async with full(start, big=big) as (made, _):
        is_from(await made.system.ask(chat(tools=TOOLS)), "canned", "queue_full")
        is_from(await made.system.ask(chat(tools=[])), "big", "queue_full")


async def test_who_does_not_serve_the_endpoint_is_passed_over(start: Start) -> None:
    big = deployment("big")
    big.endpoints.append("/v1/completions")
    async with full(start, big=big) as (made, _):
        is_from(await made.system.ask(chat()), "canned", "queue_full")


async def test_a_deployment_that_is_not_there_is_passed_over(start: Start) -> None:
    mini = laddered({"": ["fallback:nobody", "fallback:canned"]})
    async with full(start, mini=mini) as (made, _):
        is_from(await made.system.ask(chat()), "canned", "queue_full")


async def test_an_adapter_goes_only_where_it_is_known(start: Start) -> None:
    mini = laddered({"": ["fallback:big", "fallback:canned"]})
    mini.aliases.add(alias="pirate", adapter="pirate@1")
    big = deployment("big", adapters={"pirate": "pirate@2"})
    async with full(start, mini=mini, big=big) as (made, _):
        # Once big's replica has told that it can hold some.
        while (answer := await made.system.ask(chat(model="mini:pirate"))).status != 200:
            is_from(await made.system.ask(chat()), "big", "queue_full")
        is_from(answer, "big", "queue_full")
        assert answer.headers["x-penstock-adapter-version"] == "pirate@2"
        version = answer.headers["x-penstock-backend-version"]
        assert version == "weights/big@weights-1+pirate@2"
        answer = await made.system.ask(chat(model="mini:pirate@1"))
        is_from(answer, "big", "queue_full")
        assert answer.headers["x-penstock-adapter-version"] == "pirate@1"


async def test_an_adapter_that_nobody_else_has_is_answered_by_nobody_else(start: Start) -> None:
    mini = laddered({"": ["fallback:big", "fallback:canned"]})
    mini.aliases.add(alias="pirate", adapter="pirate@1")
    big = deployment("big", base_family="another")
    async with full(start, mini=mini, big=big) as (made, _):
        answer = await made.system.ask(chat(model="mini:pirate"))
        assert answer.headers["x-penstock-drop-reason"] == "queue_full"
        is_from(await made.system.ask(chat()), "big", "queue_full")


async def test_what_an_engine_died_of_goes_only_to_who_has_none(start: Start) -> None:
    made = await fleet(start, mini=laddered(), scripts=(engine_dies, hello, hello))
    is_from(await made.system.ask(chat()), "canned", "engine_dead")
    report = await made.system.reports(lambda report: len(report.suspects) > 0, "a suspect")
    found = suspects.Suspect()
    found.CopyFrom(report.suspects[0])
    assert found.deployment == "mini"
    found.deaths.add(replica_id="r9", at_ms=found.deaths[0].at_ms + 60_000, gateway_id="gw-2")
    await made.publish(made.mini, suspects=[found])
    calls = len(made.replicas[0].calls)
    is_from(await made.system.ask(chat()), "canned", "engine_dead")
    assert len(made.replicas[0].calls) == calls, "it is quarantined"
    assert not made.replicas[1].calls


async def test_what_is_quarantined_is_refused_where_all_others_have_engines(start: Start) -> None:
    mini = laddered({"": ["fallback:big"]})
    made = await fleet(start, mini=mini, scripts=(engine_dies, hello, hello))
    answer = await made.system.ask(chat())
    assert answer.error["code"] == "engine_dead"
    assert not made.replicas[1].calls


async def test_a_ladder_is_changed_without_new_replicas(start: Start) -> None:
    async with full(start, mini=laddered({})) as (made, _):
        assert (await made.system.ask(chat())).status == 429
        await made.publish(laddered({"queue_full": ["fallback:canned"]}))
        is_from(await made.system.ask(chat()), "canned", "queue_full")
        await made.publish(laddered({"": ["fallback:big"], "queue_full": ["reject"]}))
        assert (await made.system.ask(chat())).status == 429


async def test_the_fleet_answers_again_once_it_has_room(start: Start) -> None:
    async with full(start) as (made, held):
        is_from(await made.system.ask(chat()), "big", "queue_full")
        held.let_go(1000)

        async def backend() -> str:
            return (await made.system.ask(chat())).headers["x-penstock-backend"]

        while await backend() != "mini":
            pass
        answer = await made.system.ask(chat())
        assert "x-penstock-degraded" not in answer.headers


async def test_metrics_and_the_log_say_which_rung_and_why(start: Start) -> None:
    async with full(start) as (made, _):
        answer = await made.system.ask(chat())
        labels = {"deployment": "mini", "reason": "queue_full", "rung": "fallback:big"}
        assert await made.system.metric("penstock_gateway_degraded_total", **labels) == 1
        assert await made.system.metric("penstock_gateway_degraded_total") == 1
        ours = answer.headers["x-request-id"]
        line = await until(
            lambda: made.system.gateway.find_log("request settled", request_id=ours), "logged"
        )
    assert line is not None
    told = {"degraded": "queue_full", "rung": "fallback:big", "asked": "mini"}
    assert line.items() >= (told | {"deployment": "big", "replica": "r2", "trimmed": ""}).items()


async def test_a_tenant_pays_once_and_to_who_answered(start: Start) -> None:
    acme = tenant("acme", keys=["sesame"], limits={"requests_per_minute": 100})
    scripts = (failing(500, "internal_error"), hello, hello)
    made = await fleet(start, mini=laddered(), scripts=scripts, tenants=[acme])
    answer = await made.system.ask(chat("Authorization: Bearer sesame\r\n"))
    is_from(answer, "big", "upstream_failed")
    assert answer.headers["x-ratelimit-remaining-requests"] == "99"
    report = await made.system.reports(lambda report: len(report.usage) > 0, "usage")
    (row,) = report.usage
    assert (row.tenant, row.deployment, row.requests) == ("acme", "big", 1)
    assert (row.prompt_tokens, row.completion_tokens) == (3, 2)


async def test_a_stream_that_was_opened_early_is_told_by_comments_and_metadata(
    start: Start,
) -> None:
    mini = laddered(max_queued=10, queue_deadline_ms=300)
    async with full(start, "--heartbeat-ms", "50", mini=mini) as (made, _):
        data = chat("x-penstock-metadata: include\r\n", stream=True)
        answer = await made.system.ask(data)
        assert not answer.cut_off
        assert answer.body.startswith(b": ping\n\n")
        assert "x-penstock-degraded" not in answer.headers
        assert b"\n: x-penstock-degraded: queue_deadline\n" in answer.body
        assert b"\n: x-penstock-backend: big\n" in answer.body
        (chunk,) = [e for e in answer.body.split(b"\n\n") if b'"penstock":' in e]
    facts = json.loads(chunk.removeprefix(b"data: "))["penstock"]
    assert (facts["backend"], facts["degraded"]) == ("big", "queue_deadline")
    assert facts["backend_version"] == "weights/big@weights-1"


async def test_a_stream_that_was_opened_early_ends_with_the_first_refusal(start: Start) -> None:
    broken = failing(500, "internal_error")
    mini = laddered({"": ["fallback:big"]}, max_queued=10, queue_deadline_ms=300)
    async with full(start, "--heartbeat-ms", "50", mini=mini, answers=(broken, hello)) as (made, _):
        answer = await made.system.ask(chat(stream=True))
        assert answer.status == 200
        assert answer.cut_off
        assert b'"code":"queue_deadline"' in answer.body
        assert len(made.replicas[1].calls) == 1


async def test_what_costs_money_is_booked_to_who_answered(start: Start) -> None:
    made = await fleet(start, mini=laddered())

    async def priced(call: FakeCall) -> None:
        call.usage.cost_nanousd = 1_234_567
        await hello(call)

    made.replicas[0].script = priced
    assert (await made.system.ask(chat())).status == 200
    report = await made.system.reports(lambda report: len(report.usage) > 0, "usage")
    assert [(row.deployment, row.cost_nanousd) for row in report.usage] == [("mini", 1_234_567)]


async def test_when_all_replicas_are_gone_others_answer_at_once_until_they_are_back(
    start: Start,
) -> None:
    made = await fleet(start, mini=laddered(max_ongoing=0))
    assert (await made.system.ask(chat())).headers["x-penstock-backend"] == "mini"
    await made.replicas[0].die()
    began = time.monotonic()
    answers = await asyncio.gather(*(made.system.ask(chat()) for _ in range(20)))
    assert time.monotonic() - began < 1
    assert {answer.headers["x-penstock-backend"] for answer in answers} == {"big"}
    await made.replicas[0].start_again()
    async with asyncio.timeout(2):
        while (await made.system.ask(chat())).headers["x-penstock-backend"] != "mini":
            pass


async def test_requests_leave_for_the_wait_until_it_is_clearly_shorter(start: Start) -> None:
    house = [tenant(name, keys=[name], degrade_never=True) for name in ("house", "yard")]
    asks_nobody_else, waits_itself = (chat(f"Authorization: Bearer {t.id}\r\n") for t in house)
    made = await fleet(
        start,
        mini=laddered(max_queued=10, wait_budget_ms=1),
        scripts=(slow(0.1), hello, hello),
        tenants=house,
    )
    assert (await made.system.ask(chat())).status == 200
    held = Held()
    made.replicas[0].script = held

    async def budget(wait_budget_ms: int) -> None:
        limited = laddered(max_queued=10, wait_budget_ms=wait_budget_ms)
        await made.publish(limited, tenants=house)

    async def is_queued(data: bytes) -> None:
        async with waiting(made.system, data):
            pass
        await made.system.has_queued(0)

    async with busy(made.system):
        is_from(await made.system.ask(chat()), "big", "wait_exceeded")
        wait = wait_of(await made.system.ask(asks_nobody_else))
        await budget(wait * 115 // 100)
        is_from(await made.system.ask(chat()), "big", "wait_exceeded")
        await is_queued(waits_itself)
        is_from(await made.system.ask(chat()), "big", "wait_exceeded")
        await budget(wait * 2)
        await is_queued(chat())
        await budget(wait * 115 // 100)
        await is_queued(chat())
        held.let_go(1000)
