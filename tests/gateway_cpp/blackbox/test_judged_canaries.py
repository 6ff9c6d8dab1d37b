"""Canaries that are judged, of three kinds: a failing candidate hurts nobody before its first
event, whatever it does, and each session keeps its arm.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from penstock.v1 import canary_pb2 as messages
from penstock.v1 import common_pb2 as common
from penstock.v1 import inference_pb2 as v1
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import deployment, route, tenant
from tests.fakes.fake_replica import FakeCall, Script, delta, hang, hello, refuse
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import CHAT, Response, chat, request
from tests.gateway_cpp.blackbox.test_endpoints import NAMES, answer

KINDS = ("deployment", "version", "revision")
every_kind = pytest.mark.parametrize("kind", KINDS)
both_forms = pytest.mark.parametrize("stream", [False, True])


@dataclass(frozen=True, slots=True)
class Arms:
    """A system whose `mini` has a canary that is judged."""

    system: System
    kind: str

    async def ask(
        self, *, path: str = "/v1/chat/completions", headers: str = "", **fields: object
    ) -> Response:
        """One request for what has the canary."""
        model = "mini:pirate" if self.kind == "version" else "mini"
        body = json.dumps(CHAT | {"model": model} | fields).encode()
        return await self.system.ask(request(path=path, body=body, headers=headers))

    def calls(self, *, candidate: bool) -> list[v1.CallRequest]:
        """What came to that arm."""
        if self.kind == "version":
            asked = [call.request for call in self.system.replicas[0].calls]
            return [call for call in asked if (call.adapter == "pirate@2") == candidate]
        return [call.request for call in self.system.replicas[1 if candidate else 0].calls]


def by_version(stable: Script, candidate: Script) -> Script:
    """A replica that holds both versions."""

    async def script(call: FakeCall) -> None:
        await (candidate if call.request.adapter == "pirate@2" else stable)(call)

    return script


async def with_arms(
    start: Start,
    kind: str,
    candidate: Script,
    *,
    stable: Script = hello,
    permille: int = 1000,
    limits: routes.Limits | None = None,
    prices: routes.Prices | None = None,
    tenants: Iterable[routes.Tenant] = (),
) -> Arms:
    """The first replica is the stable arm, the second the candidate; versions share the first."""
    first = by_version(stable, candidate) if kind == "version" else stable
    system = await start("--threads", "1", scripts=(first, candidate), tenants=tenants)
    shares = {"pirate": {"pirate@1": 1000 - permille, "pirate@2": permille}}
    mini = deployment(adapters=shares if kind == "version" else None, limits=limits)
    shown, routed = [mini], [route(replica) for replica in system.replicas]
    rule = messages.CanaryRule(uid="c1", name="try", step=1, deployment="mini", permille=permille)
    if kind == "deployment":
        rule.candidate = "next"
        mini.canary.add(deployment="next", permille=permille)
        shown.append(deployment("next", limits=limits, prices=prices))
        routed[1].deployment = "next"
    elif kind == "version":
        rule.alias, rule.stable_adapter, rule.candidate_adapter = "pirate", "pirate@1", "pirate@2"
        routed.pop()
    else:
        rule.candidate_digest = "new"
        mini.canary.add(deployment="mini", permille=permille, template_digest="new")
        routed[0].template_digest, routed[1].template_digest = "old", "new"
    version = await system.control.publish(shown, routed, canaries=[rule], tenants=tenants)
    await system.has_routes(version)
    return Arms(system, kind)


async def ends_badly(call: FakeCall) -> None:
    """An end that says that the answer is none."""
    done = v1.Finished(finish_reasons=["error"], adapter=call.request.adapter)
    await call.write(v1.CallEvent(call_id=call.call_id, finished=done))
    call.ended = True


async def leaves_its_head(call: FakeCall) -> None:
    """Says how its answer begins, and then that there is none."""
    head = v1.Head(status=200, content_type="text/event-stream" if call.streamed else "text/plain")
    await call.write(v1.CallEvent(call_id=call.call_id, head=head))
    await refuse(500, "engine_error")(call)


WAYS: dict[str, tuple[Script, str]] = {
    "broken": (refuse(500, "engine_error", retry=True), "engine_error"),
    "broken for good": (refuse(500, "engine_error"), "engine_error"),
    "full": (refuse(503, "overloaded", retry=True), "overloaded"),
    "cannot load": (refuse(503, "adapter_load_failed", retry=True), "adapter_load_failed"),
    "refused": (refuse(400, "unsupported_parameter"), "unsupported_parameter"),
    "too long": (refuse(400, "context_length_exceeded"), "context_length_exceeded"),
    "unknown": (refuse(404, "model_not_found"), "model_not_found"),
    "late": (hang, "deadline_exceeded"),
    "not whole": (ends_badly, "upstream_error"),
    "head alone": (leaves_its_head, "engine_error"),
}


@both_forms
@pytest.mark.parametrize("way", WAYS)
@every_kind
async def test_what_fails_before_its_first_event_is_answered_by_the_stable_arm(
    start: Start, kind: str, way: str, stream: bool
) -> None:
    script, why = WAYS[way]
    deadline_ms = 1_000 if way == "late" else 30_000
    limits = routes.Limits(max_queued=10, first_event_deadline_ms=deadline_ms)
    arms = await with_arms(start, kind, script, limits=limits)
    answer = await arms.ask(stream=stream)
    assert answer.status == 200
    assert b"[DONE]" in answer.body if stream else b"Hello" in answer.body
    assert b"error" not in answer.body
    assert len(arms.calls(candidate=True)) == 1
    assert len(arms.calls(candidate=False)) == 1
    assert answer.headers["x-penstock-backend"] == "mini"
    assert answer.headers["x-penstock-replica"] == "r1"
    expected = "pirate@1" if kind == "version" else None
    assert answer.headers.get("x-penstock-adapter-version") == expected
    left = {"deployment": "next", "version": "mini:pirate@2", "revision": "mini@new"}[kind]
    log = arms.system.gateway.find_log
    await until(lambda: log("request settled", left=f"{left}={why}"), "the log line says so")


@pytest.mark.parametrize("kind", ["deployment", "revision"])
async def test_a_candidate_that_dies_with_its_requests_hurts_nobody(
    start: Start, kind: str
) -> None:
    arms = await with_arms(start, kind, hang)
    dying = arms.system.replicas[1]
    async with arms.system.client() as client:
        await client.send(chat())
        await until(lambda: len(dying.calls) == 1, "the candidate has it")
        await dying.die()
        answer = await client.response()
    assert (answer.status, answer.headers["x-penstock-replica"]) == (200, "r1")
    answer = await arms.ask()
    assert (answer.status, answer.headers["x-penstock-replica"]) == (200, "r1")


@pytest.mark.parametrize("path", NAMES)
@every_kind
async def test_what_a_candidate_refuses_at_any_endpoint_the_stable_arm_answers(
    start: Start, kind: str, path: str
) -> None:
    arms = await with_arms(start, kind, refuse(400, "not_here"), stable=answer)
    found = await arms.ask(path=path, prompt="a", input="a")
    assert (found.status, found.body) == (200, b'{"ok":true}')
    (refused,), (answered,) = arms.calls(candidate=True), arms.calls(candidate=False)
    assert (refused.path, refused.body) == (answered.path, answered.body)


@both_forms
@every_kind
async def test_a_large_body_is_kept_for_the_stable_arm(
    start: Start, kind: str, stream: bool
) -> None:
    arms = await with_arms(start, kind, refuse(500, "engine_error"))
    pad = "x" * 400_000
    assert (await arms.ask(stream=stream, pad=pad)).status == 200
    (refused,), (answered,) = arms.calls(candidate=True), arms.calls(candidate=False)
    assert pad.encode() in answered.body
    assert refused.body == answered.body


@every_kind
async def test_what_breaks_after_its_first_event_is_told_in_the_stream(
    start: Start, kind: str
) -> None:
    async def waits(call: FakeCall) -> None:
        await call.send(delta("Hel"))
        await call.cancelled.wait()

    arms = await with_arms(start, kind, waits)
    async with arms.system.client() as client:
        model = "mini:pirate" if kind == "version" else "mini"
        body = json.dumps(CHAT | {"model": model, "stream": True}).encode()
        await client.send(request(body=body))
        assert (await client.head())[0] == 200
        assert b"Hel" in (await client.chunk() or b"")
        held = arms.system.replicas[0 if kind == "version" else 1].calls[-1]
        await held.fail(common.ErrorDetail(status=500, code="engine_error", message="it broke"))
        assert b"it broke" in (await client.chunk() or b"")
    assert arms.calls(candidate=False) == []


@every_kind
async def test_what_both_arms_refuse_is_refused_in_the_stable_ones_words(
    start: Start, kind: str
) -> None:
    arms = await with_arms(start, kind, refuse(400, "only_here"), stable=refuse(422, "everywhere"))
    answer = await arms.ask()
    assert (answer.status, answer.error["code"]) == (422, "everywhere")


@every_kind
async def test_what_an_engine_died_of_goes_to_no_other(start: Start, kind: str) -> None:
    arms = await with_arms(start, kind, refuse(503, "engine_dead"))
    answer = await arms.ask()
    assert (answer.status, answer.error["code"]) == (503, "engine_dead")
    assert arms.calls(candidate=False) == []


@every_kind
async def test_retries_of_a_body_and_requests_of_a_session_stay_in_their_arm(
    start: Start, kind: str
) -> None:
    arms = await with_arms(start, kind, hello, permille=500)

    async def is_candidates(seed: int, *, headers: str = "", pad: str = "") -> bool:
        before = len(arms.calls(candidate=True))
        assert (await arms.ask(headers=headers, seed=seed, pad=pad)).status == 200
        return len(arms.calls(candidate=True)) > before

    large = "x" * 100_000
    by_body = [[await is_candidates(i, pad=large) for i in range(20)] for _ in range(3)]
    by_name = [
        [await is_candidates(turn, headers=f"x-penstock-session: s{i}\r\n") for i in range(20)]
        for turn in range(3)
    ]
    for arms_of in (by_body, by_name):
        assert arms_of[0] == arms_of[1] == arms_of[2]
        assert 2 < sum(arms_of[0]) < 18


@both_forms
async def test_a_candidate_that_its_tenant_has_no_money_for_is_not_asked(
    start: Start, stream: bool
) -> None:
    poor = tenant(keys=["sesame"], limits={"nanousd_per_day": 1000})
    dear = routes.Prices(input=1_000_000, output=1_000_000)
    arms = await with_arms(start, "deployment", hello, prices=dear, tenants=[poor])
    answered = await arms.ask(headers="Authorization: Bearer sesame\r\n", stream=stream)
    assert answered.status == 200
    assert (len(arms.calls(candidate=False)), arms.calls(candidate=True)) == (1, [])
    report = await arms.system.reports(lambda told: bool(told.usage), "what it used")
    assert [(row.requests, row.rejected) for row in report.usage] == [(1, 0)]
    assert not any(told.candidate.requests for told in report.canaries)
