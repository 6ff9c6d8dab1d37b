"""What a gateway reports of a canary's two arms: each session once, and only what says something of
an arm.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count

import pytest

from penstock.v1 import canary_pb2 as messages
from penstock.v1 import common_pb2 as common
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import deployment, route, tenant
from tests.fakes.fake_replica import (
    DONE,
    FakeCall,
    Script,
    delta,
    hang,
    hello,
    last_delta,
    refuse,
    unary_chat,
)
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import RawClient, Response, chat

BROKEN = refuse(500, "engine_error")
INVALID = refuse(400, "unsupported_parameter")


@dataclass(frozen=True, slots=True)
class Judged:
    """`mini`, at the first replica, has a canary: `next`, at the second."""

    system: System
    permille: int = 0
    deadline_ms: int = 0  # for the first event
    tenants: list[routes.Tenant] = field(default_factory=list)
    resume: bool = False

    async def publish(self, *, step: int = 1, warmup: int = 0, candidate: str = "next") -> None:
        """Routes with the canary at this step, in force when this returns."""
        mini, own = deployment(canary={"next": self.permille}), deployment("next")
        for each in (mini, own):
            each.limits.first_event_deadline_ms = self.deadline_ms
            each.limits.max_queued = 10
            each.limits.resume = self.resume
        rule = messages.CanaryRule(
            uid="c1", name="try", step=step, deployment="mini", candidate=candidate
        )
        rule.permille, rule.warmup_requests = self.permille, warmup
        first, *others = self.system.replicas
        version = await self.system.control.publish(
            [mini, own],
            [route(first), *(route(other, of="next") for other in others)],
            canaries=[rule],
            tenants=self.tenants,
        )
        await self.system.has_routes(version)

    async def ask(self, *, session: str = "", headers: str = "", **fields: object) -> Response:
        """One request of `mini`."""
        named = f"x-penstock-session: {session}\r\n" if session else ""
        return await self.system.ask(chat(named + headers, **fields))

    async def told(
        self, holds: Callable[[messages.CanaryReport], bool], what: str
    ) -> messages.CanaryReport:
        """What the next report of which that is true says of the canary."""
        report = await self.system.reports(
            lambda report: any(map(holds, report.canaries)), f"the canary's counts: {what}"
        )
        (canary,) = report.canaries
        return canary

    async def arms(self, *, requests: int) -> tuple[messages.CanaryArm, messages.CanaryArm]:
        """The stable one and the candidate, once so many requests count or are refused alike."""
        canary = await self.told(
            lambda c: (
                sum(arm.requests + arm.refused for arm in (c.stable, c.candidate)) == requests
            ),
            f"{requests} requests",
        )
        return canary.stable, canary.candidate


async def judged(
    start: Start,
    *,
    stable: Script = hello,
    candidate: Script | None = hello,
    share: int = 1000,
    deadline_ms: int = 0,
    warmup: int = 0,
    tenants: Iterable[routes.Tenant] = (),
    resume: bool = False,
) -> Judged:
    """Without a `candidate` it has no replica."""
    scripts = (stable,) if candidate is None else (stable, candidate)
    system = await start("--threads", "2", scripts=scripts)
    made = Judged(system, share, deadline_ms, list(tenants), resume)
    await made.publish(warmup=warmup)
    return made


def counted(counts: Iterable[messages.CanaryCount]) -> dict[str, int]:
    return {one.reason: one.count for one in counts}


def timed(times: messages.CanaryTimes) -> int:
    """How many were timed."""
    return sum(times.counts)


async def breaks(call: FakeCall) -> None:
    """Sends an event and fails."""
    await call.send(delta("Hel"))
    await call.fail(common.ErrorDetail(status=500, code="engine_error", message="it broke"))


def ends_with(*reasons: str, tokens: int = 20) -> Script:
    """A whole answer whose choices end so."""

    async def script(call: FakeCall) -> None:
        call.usage.completion_tokens = tokens
        await call.send(unary_chat("Hello"))
        await call.finish(*reasons)

    return script


async def test_a_session_counts_once_however_often_it_asks(start: Start) -> None:
    made = await judged(start, share=500)
    for turn in range(3):
        for i in range(20):
            await made.ask(session=f"s{i}", seed=turn)
    stable, candidate = await made.arms(requests=60)
    assert stable.sessions + candidate.sessions == 20
    assert stable.answered_sessions + candidate.answered_sessions == 20
    assert (stable.requests, candidate.requests) == (3 * stable.sessions, 3 * candidate.sessions)
    assert len(made.system.replicas[0].calls) == stable.requests
    assert 2 < candidate.sessions < 18


async def test_a_client_without_a_session_that_retries_one_body_is_one_session(
    start: Start,
) -> None:
    made = await judged(start, stable=BROKEN, candidate=BROKEN)
    for _ in range(10):
        assert (await made.ask(seed=1)).status == 500
    await made.ask(seed=2)
    _, candidate = await made.arms(requests=11)
    assert (candidate.sessions, candidate.bad_sessions, candidate.requests) == (2, 2, 11)
    assert counted(candidate.errors) == {"5xx": 2}
    assert candidate.saved == 0


SAVED: dict[str, tuple[Script | None, str]] = {
    "broken": (BROKEN, "5xx"),
    "late": (hang, "timeout"),
    "refused": (INVALID, "refused"),
    "full": (refuse(429, "rate_limit", retry=True), "no_place"),
    "without a replica": (None, "no_place"),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("way", SAVED)
async def test_what_the_stable_arm_saved_is_told_of_the_candidate(
    start: Start, way: str, stream: bool
) -> None:
    script, reason = SAVED[way]
    made = await judged(start, candidate=script, deadline_ms=300 if way == "late" else 0)
    assert (await made.ask(stream=stream)).status == 200
    stable, candidate = await made.arms(requests=1)
    assert (candidate.sessions, candidate.bad_sessions, candidate.saved) == (1, 1, 1)
    assert counted(candidate.errors) == {reason: 1}
    assert candidate.answered_sessions == timed(candidate.total) == 0
    assert stable == messages.CanaryArm(
        ttft=messages.CanaryTimes(),
        between_tokens=messages.CanaryTimes(),
        total=messages.CanaryTimes(),
    )


async def test_a_stream_that_breaks_after_its_first_event_is_no_ones_to_save(
    start: Start,
) -> None:
    seen = asyncio.Event()

    async def breaks_later(call: FakeCall) -> None:
        await call.send(delta("Hel"))
        await seen.wait()
        await call.fail(common.ErrorDetail(status=500, code="engine_error", message="it broke"))

    made = await judged(start, candidate=breaks_later)
    async with made.system.client() as client:
        await client.send(chat(stream=True))
        await client.head()
        assert await client.chunk() == delta("Hel")
        seen.set()
        _, candidate = await made.arms(requests=1)
    assert counted(candidate.errors) == {"broken_stream": 1}
    assert (candidate.bad_sessions, candidate.saved) == (1, 0)


async def test_an_engine_that_died_counts_against_its_arm(start: Start) -> None:
    made = await judged(start, candidate=refuse(503, "engine_dead"))
    assert (await made.ask()).status == 503
    _, candidate = await made.arms(requests=1)
    assert counted(candidate.errors) == {"engine_dead": 1}


async def test_an_engine_that_was_killed_counts_though_the_arm_answers_then(start: Start) -> None:
    calls = count()

    async def dies_once(call: FakeCall) -> None:
        await (refuse(503, "engine_killed") if next(calls) == 0 else hello)(call)

    made = await judged(start, candidate=dies_once, resume=True)
    assert (await made.ask()).status == 200
    _, candidate = await made.arms(requests=1)
    assert counted(candidate.errors) == {"engine_dead": 1}


async def test_what_both_arms_refuse_is_nobodys_fault(start: Start) -> None:
    made = await judged(start, stable=refuse(422, "everywhere"), candidate=INVALID)
    assert (await made.ask()).status == 422
    _, candidate = await made.arms(requests=1)
    assert (candidate.refused, candidate.requests, candidate.sessions) == (1, 0, 0)


async def test_the_stable_arm_counts_what_breaks_and_what_it_refuses(start: Start) -> None:
    made = await judged(start, stable=INVALID, share=0)
    await made.ask(session="a")
    made.system.replicas[0].script = BROKEN
    await made.ask(session="b")
    stable, candidate = await made.arms(requests=2)
    assert (stable.refused, stable.sessions, stable.bad_sessions) == (1, 1, 1)
    assert counted(stable.errors) == {"5xx": 1}
    assert candidate.requests == candidate.refused == 0


@asynccontextmanager
async def client_that_leaves(made: Judged) -> AsyncIterator[RawClient]:
    """Gone, with its request settled, when this ends."""
    async with made.system.client() as client:
        yield client
    await made.told(lambda _: made.system.gateway.count_log("request settled") > 0, "it settled")


@pytest.mark.parametrize("script", [hang, breaks], ids=["before its first event", "after it"])
async def test_a_client_that_leaves_says_nothing_of_an_arm(start: Start, script: Script) -> None:
    async def waits(call: FakeCall) -> None:
        if script is breaks:
            await call.send(delta("Hel"))
        await call.cancelled.wait()

    made = await judged(start, candidate=waits)
    async with client_that_leaves(made) as client:
        await client.send(chat(stream=True))
        if script is breaks:
            assert (await client.head())[0] == 200
            assert b"Hel" in (await client.chunk() or b"")
    made.system.replicas[1].script = hello
    await made.ask(session="another")
    _, candidate = await made.arms(requests=1)
    assert (candidate.sessions, candidate.bad_sessions) == (1, 0)


async def test_what_a_tenants_limit_refuses_says_nothing_of_an_arm(start: Start) -> None:
    few = tenant(keys=["sesame"], limits={"requests_per_minute": 1})
    made = await judged(start, tenants=[few])
    key = "authorization: Bearer sesame\r\n"
    assert (await made.ask(headers=key, session="a")).status == 200
    assert (await made.ask(headers=key, session="b")).status == 429
    await made.ask(session="c")
    _, candidate = await made.arms(requests=2)
    assert (candidate.sessions, candidate.bad_sessions) == (2, 0)


FINISHES: dict[str, tuple[Script, dict[str, int], int]] = {
    "by itself": (ends_with("stop"), {"stop": 1}, 0),
    "cut": (ends_with("length"), {"length": 1}, 1),
    "filtered": (ends_with("content_filter"), {"content_filter": 1}, 1),
    "empty": (ends_with("stop", tokens=1), {"empty": 1}, 1),
    "one choice of two": (ends_with("stop", "length"), {"length": 1}, 1),
    "with a tool": (ends_with("tool_calls", tokens=1), {"tool_calls": 1}, 0),
    "in words that nobody knows": (ends_with("surprise"), {"other": 1}, 0),
}


@pytest.mark.parametrize("way", FINISHES)
async def test_how_answers_end_is_told(start: Start, way: str) -> None:
    script, finishes, bad = FINISHES[way]
    made = await judged(start, candidate=script)
    assert (await made.ask()).status == 200
    _, candidate = await made.arms(requests=1)
    assert counted(candidate.finishes) == finishes
    assert (candidate.answered_sessions, candidate.bad_finishes) == (1, bad)
    assert candidate.bad_sessions == 0
    assert candidate.prompt_tokens == 3


async def test_streams_are_timed_from_their_first_event_and_others_as_a_whole(
    start: Start,
) -> None:
    made = await judged(start)
    await made.ask(session="a")
    await made.ask(session="b", stream=True)
    _, candidate = await made.arms(requests=2)
    assert (timed(candidate.total), timed(candidate.ttft), timed(candidate.between_tokens)) == (
        2,
        1,
        1,
    )
    assert list(candidate.total.bins) == sorted(candidate.total.bins)


async def test_a_late_first_event_stands_in_its_bin(start: Start) -> None:
    async def waits(call: FakeCall) -> None:
        await made.system.reports(lambda _: True, "a report later")
        await made.system.reports(lambda _: True, "another one")
        await call.send(delta("Hello") + last_delta() + DONE, events=3)
        await call.finish()

    made = await judged(start, share=0)
    made.system.replicas[0].script = waits
    await made.ask(stream=True)
    stable, _ = await made.arms(requests=1)
    line = made.system.gateway.find_log("request settled")
    assert line is not None
    (at,) = stable.ttft.bins
    assert 16 * 2 ** (at / 8) <= line["ttft_ms"] * 1000 < 16 * 2 ** ((at + 1) / 8) + 1


async def test_a_replicas_first_answers_are_not_timed(start: Start) -> None:
    made = await judged(start, warmup=2)
    for i in range(5):
        await made.ask(session=f"s{i}")
    _, candidate = await made.arms(requests=5)
    assert (candidate.answered_sessions, timed(candidate.total)) == (5, 3)


async def test_counts_begin_anew_with_a_step_and_a_late_end_is_not_of_it(start: Start) -> None:
    async def held(call: FakeCall) -> None:
        await call.send(delta("Hel"))
        await made.publish(step=2)
        await call.send(delta("lo") + last_delta() + DONE, events=3)
        await call.finish()

    made = await judged(start)
    await made.ask(session="a")
    await made.arms(requests=1)
    made.system.replicas[1].script = held
    assert DONE in (await made.ask(session="a", stream=True)).body
    made.system.replicas[1].script = hello
    await made.ask(session="a")
    canary = await made.told(lambda c: c.step == 2 and c.candidate.requests > 0, "step 2")
    assert (canary.candidate.requests, canary.candidate.sessions) == (1, 1)


async def test_a_rule_is_told_of_before_anybody_asked_and_one_without_sense_never(
    start: Start,
) -> None:
    made = await judged(start)
    canary = await made.told(lambda _: True, "any")
    assert (canary.uid, canary.step, canary.candidate.requests) == ("c1", 1, 0)
    await made.publish(candidate="")
    report = await made.system.reports(lambda report: report.snapshot_version == 3, "without one")
    assert not report.canaries
    assert (await made.ask()).status == 200


async def test_the_page_and_the_log_name_the_arm(start: Start) -> None:
    made = await judged(start, candidate=BROKEN)
    await made.ask()
    name = "penstock_gateway_canary_{}sessions_total"
    labels = {"canary": "try", "arm": "candidate"}
    assert await made.system.metric(name.format(""), **labels) == 1
    assert await made.system.metric(name.format("bad_"), **labels) == 1
    assert await made.system.metric(name.format(""), canary="try", arm="stable") == 0
    line = made.system.gateway.find_log("request settled")
    assert line is not None
    assert (line["canary"], line["arm"], line["deployment"]) == ("try", "candidate", "mini")
