"""Answers that break and go on at another replica: clients get every byte once, or the truth."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any

import openai
import pytest

from penstock.v1 import common_pb2 as common
from penstock.v1 import inference_pb2 as v1
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import deployment, digest_of
from tests.fakes.fake_replica import FakeCall, Script, hang, hello
from tests.fakes.lazily import anthropic
from tests.fakes.resumable import (
    CREATED,
    PROMPT_TOKENS,
    Lie,
    answer,
    bad_resume,
    breaking,
    equal_load,
    failing,
    resume_unsupported,
    saying,
)
from tests.fakes.spoken import CHAT, MESSAGES, RESPONSES, Spoken
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import Response, chat, request

WAIT_MS = 2000
SPOKEN = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES}
PING = b": ping\n\n"
killed = failing("engine_killed")
stopped = failing("engine_stopped", retry=True)  # no fault that a replica is held to
every_dialect = pytest.mark.parametrize("dialect", SPOKEN)


def resuming(*, resume: bool = True) -> routes.DeploymentRoute:
    """`mini`, whose answers go on unless they are not to."""
    limits = routes.Limits(max_queued=99, resume=resume, resume_wait_ms=WAIT_MS)
    adapters = {"pirate": "pirate@1"}
    return deployment(adapters=adapters, selection_policy="round_robin", limits=limits)


async def alike(
    start: Start,
    *scripts: Script,
    loads: Sequence[v1.Load] | None = None,
    resume: bool = True,
    flags: Sequence[str] = (),
) -> System:
    """Replicas that say whose answers they go on with, once the gateway knows it. The first of
    the scripts is asked next."""
    system = await start(
        "--threads",
        "1",
        *flags,
        scripts=(hello,) * len(scripts),
        deployment=resuming(resume=resume),
    )
    for replica, load in zip(system.replicas, loads or [equal_load()] * len(scripts), strict=True):
        replica.tell_load(load)
    asked = [replica.calls for replica in system.replicas]
    while not (all(asked) and len(asked[0]) == len(asked[-1])):
        assert (await system.ask(chat())).status == 200
    for replica, script in zip(system.replicas, scripts, strict=True):
        replica.script = script
        replica.calls.clear()
    return system


class Breaks:
    """An end of what a replica says that waits until its client has what was said."""

    def __init__(self, end: Script = killed) -> None:
        self._end = end
        self.now = asyncio.Event()

    async def off(self) -> None:
        """It has."""
        self.now.set()

    async def __call__(self, call: FakeCall) -> None:
        await self.now.wait()
        self.now.clear()
        await self._end(call)


async def broken(
    system: System,
    breaks: Callable[[], Awaitable[object]],
    *has: bytes,
    data: bytes | None = None,
) -> Response:
    """An answer that `breaks` each time that its client has so much of it, and what comes then."""
    async with system.client() as client:
        await client.send(data or asked())
        status, headers = await client.head()
        body = b""
        while part := await client.chunk():
            body += part
            if body in has:
                await breaks()
        return Response(status, headers, body, part is None)


def once(first: Script, then: Script) -> Script:
    """A call that goes on with nothing is the first's, all others the second's."""

    async def script(call: FakeCall) -> None:
        await (then if call.request.HasField("resume") else first)(call)

    return script


def asked(spoken: Spoken = CHAT, headers: str = "") -> bytes:
    """For a stream at that endpoint."""
    body = json.dumps(spoken.body | {"stream": True}).encode()
    return request(path=spoken.path, body=body, headers=headers)


def resumes_of(system: System) -> list[v1.Resume]:
    """What replicas were told of answers that others began, by replica."""
    calls = [call for replica in system.replicas for call in replica.calls]
    return [call.request.resume for call in calls if call.request.HasField("resume")]


def is_told(seen: Response, code: str = "engine_dead") -> None:
    """The client has the truth, and no end."""
    assert f'"code":"{code}"'.encode() in seen.body, seen.body
    assert not seen.body.endswith(CHAT.last), seen.body


@every_dialect
async def test_wherever_a_stream_breaks_its_client_gets_the_rest_and_no_more(
    start: Start, dialect: str
) -> None:
    spoken = SPOKEN[dialect]
    whole = answer(5, spoken)
    system, breaks = await alike(start, hello, hello), Breaks(stopped)
    for events in range(1, len(whole.steps)):
        for replica in system.replicas:
            replica.script = once(breaking(whole, events, breaks), saying(whole))
            replica.calls.clear()
        seen = await broken(system, breaks.off, whole.said(events), data=asked(spoken))
        assert seen.body == whole.body, events
        assert not seen.cut_off
        (resume,) = resumes_of(system)
        assert resume.events == events
        assert list(resume.groups) == whole.groups(events)
        assert resume.created == CREATED
        bodies = {call.request.body for replica in system.replicas for call in replica.calls}
        ids = {call.request.request_id for replica in system.replicas for call in replica.calls}
        assert len(bodies) == len(ids) == 1


async def test_two_breaks_are_one_answer_and_the_third_is_told(start: Start) -> None:
    whole, breaks = answer(8), Breaks()

    async def dies_later(call: FakeCall) -> None:
        """Three events more of whatever is left."""
        await breaking(whole, call.request.resume.events + 3, breaks)(call)

    system = await alike(start, dies_later, dies_later, dies_later, dies_later)
    seen = await broken(system, breaks.off, *(whole.said(events) for events in (3, 6, 9)))
    assert seen.body.startswith(whole.said(9))
    is_told(seen)
    assert [resume.events for resume in resumes_of(system)] == [3, 6]
    assert sorted(len(replica.calls) for replica in system.replicas) == [0, 1, 1, 1]


async def test_what_an_engine_made_besides_before_its_death_is_made_once_more(start: Start) -> None:
    whole, breaks = answer(6), Breaks(_costing(killed, completion_tokens=6))
    system = await alike(start, breaking(whole, 3, breaks), saying(whole))
    seen = await broken(system, breaks.off, whole.said(3))
    assert seen.body == whole.body


def _costing(end: Script, **usage: int) -> Script:
    """The end of a call that has cost so much by then."""

    async def script(call: FakeCall) -> None:
        call.usage = common.Usage(prompt_tokens=PROMPT_TOKENS, **usage)
        await end(call)

    return script


async def test_the_payer_pays_prompt_and_tokens_once(start: Start) -> None:
    whole, breaks = answer(6), Breaks()
    scripts = (breaking(whole, 2, breaks), breaking(whole, 4, breaks), saying(whole))
    system = await alike(start, *scripts)
    told = {name: await system.metric(f"penstock_gateway_{name}_tokens_total") for name in COSTS}
    data = asked(headers="x-penstock-metadata: include\r\n")
    seen = await broken(system, breaks.off, whole.said(2), whole.said(4), data=data)
    more = {name: await system.metric(f"penstock_gateway_{name}_tokens_total") for name in COSTS}
    cost = {name: more[name] - told[name] for name in COSTS}
    assert cost == {"prompt": PROMPT_TOKENS, "completion": whole.tokens}
    facts = metadata(seen.body)
    assert (facts["resumes"], facts["completion_tokens"]) == (2, whole.tokens)
    lines = [await until(lambda: system.gateway.find_log("request settled", resumes=2), "settled")]
    assert lines[0]["completion_tokens"] == whole.tokens


COSTS = ("prompt", "completion")


def metadata(body: bytes) -> dict[str, Any]:
    """What the chunk of metadata says."""
    (event,) = [event for event in body.split(b"\n\n") if b'"penstock":' in event]
    facts: dict[str, Any] = json.loads(event.removeprefix(b"data: "))["penstock"]
    return facts


async def test_a_replica_that_is_lost_loses_no_stream(start: Start) -> None:
    whole = answer(6)
    system = await alike(start, breaking(whole, 3, hang), saying(whole))
    seen = await broken(system, system.replicas[0].die, whole.said(3))
    assert seen.body == whole.body
    assert await system.metric("penstock_gateway_resumes_total", outcome="resumed") == 1


async def test_the_same_replica_goes_on_once_it_is_back(start: Start) -> None:
    whole = answer(6)
    system = await alike(start, breaking(whole, 3, hang))
    (replica,) = system.replicas

    async def restarts() -> None:
        await replica.die()
        replica.script = saying(whole)
        await replica.start_again()

    seen = await broken(system, restarts, whole.said(3))
    assert seen.body.replace(PING, b"") == whole.body


LIES = {
    "another prompt": Lie(head=v1.Head(prompt_tokens=PROMPT_TOKENS + 1)),
    "another time": Lie(head=v1.Head(created=CREATED + 1)),
    "no stream": Lie(head=v1.Head(content_type="application/json")),
    "trimmed": Lie(head=v1.Head(trimmed_tokens=7)),
}


@pytest.mark.parametrize("name", LIES)
async def test_who_goes_on_with_another_answer_is_not_believed(start: Start, name: str) -> None:
    whole, breaks = answer(6), Breaks()
    system = await alike(start, breaking(whole, 3, breaks), saying(whole, LIES[name]))
    seen = await broken(system, breaks.off, whole.said(3))
    assert seen.body.startswith(b"".join(step.body for step in whole.steps[:3]))
    assert whole.steps[3].body not in seen.body
    is_told(seen)


async def test_a_wrong_usage_never_pays_a_tenant_back(start: Start) -> None:
    whole, breaks = answer(6), Breaks()
    lie = Lie(usage=common.Usage(prompt_tokens=1, completion_tokens=1))
    system = await alike(start, breaking(whole, 4, breaks), saying(whole, lie))
    before = await system.metric("penstock_gateway_completion_tokens_total")
    seen = await broken(system, breaks.off, whole.said(4))
    assert seen.body == whole.body
    assert await system.metric("penstock_gateway_completion_tokens_total") - before >= 4


async def test_one_that_cannot_leaves_it_to_a_third(start: Start) -> None:
    whole, breaks = answer(6), Breaks()
    system = await alike(start, breaking(whole, 3, breaks), resume_unsupported, saying(whole))
    assert (await broken(system, breaks.off, whole.said(3))).body == whole.body


async def test_a_resume_that_fits_nothing_is_told_by_what_broke_the_answer(start: Start) -> None:
    whole, breaks = answer(6), Breaks()
    system = await alike(start, breaking(whole, 3, breaks), bad_resume)
    is_told(await broken(system, breaks.off, whole.said(3)))


async def test_an_adapters_answer_goes_on_with_the_same_bytes_of_it(start: Start) -> None:
    whole, breaks = answer(6), Breaks()
    script = once(breaking(whole, 3, breaks), saying(whole))
    system = await alike(start, script, script)
    data = chat(stream=True, model="mini:pirate")
    assert (await broken(system, breaks.off, whole.said(3), data=data)).body == whole.body
    calls = [call.request for replica in system.replicas for call in replica.calls]
    named = {(call.adapter, call.adapter_digest, call.model) for call in calls}
    assert named == {("pirate@1", digest_of("pirate@1"), "mini:pirate")}
    assert len(calls) == 2


OTHERS = {
    "another configuration": equal_load("other"),
    "an old replica": v1.Load(state=v1.REPLICA_STATE_READY, max_running=256),
    "one that does not": equal_load(resumes=False),
}


@pytest.mark.parametrize("name", OTHERS)
async def test_no_other_replica_is_gone_on_at(start: Start, name: str) -> None:
    whole = answer(6)
    scripts = (breaking(whole, 3, hang), saying(whole))
    system = await alike(start, *scripts, loads=[equal_load(), OTHERS[name]])
    seen = await broken(system, system.replicas[0].die, whole.said(3))
    is_told(seen, "upstream_error")
    assert resumes_of(system) == []


async def test_what_nobody_asked_to_go_on_is_told_at_once(start: Start) -> None:
    whole, breaks = answer(6), Breaks()
    system = await alike(start, breaking(whole, 3, breaks), saying(whole), resume=False)
    is_told(await broken(system, breaks.off, whole.said(3)))
    (call,) = system.replicas[0].calls
    assert not call.request.token_groups
    assert resumes_of(system) == []


async def test_no_room_for_tokens_means_no_promise(start: Start) -> None:
    whole, breaks = answer(6), Breaks()
    flags = ("--resume-budget-bytes", "0")
    system = await alike(start, breaking(whole, 3, breaks), saying(whole), flags=flags)
    is_told(await broken(system, breaks.off, whole.said(3)))


async def test_a_pause_is_filled_with_comments(start: Start) -> None:
    whole, breaks, goes_on = answer(6), Breaks(), asyncio.Event()

    async def later(call: FakeCall) -> None:
        await goes_on.wait()
        await saying(whole)(call)

    flags = ("--heartbeat-ms", "50")
    system = await alike(start, breaking(whole, 3, breaks), later, flags=flags)
    async with system.client() as client:
        await client.send(asked())
        await client.head()
        body = b""
        while part := await client.chunk():
            body += part
            if body == whole.said(3):
                breaks.now.set()
            if body.startswith(whole.said(3) + PING):
                goes_on.set()
    assert body.replace(PING, b"") == whole.body


def _read(spoken: Spoken, url: str, event: Callable[[], object]) -> list[Any]:
    """All that the dialect's own SDK makes of a stream; says of each event that it has it."""
    body: Any = spoken.body | {"stream": True}
    with (
        openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client,
        anthropic.Anthropic(base_url=url, api_key="none", max_retries=0) as claude,
    ):
        create = {
            CHAT.path: client.chat.completions.create,
            RESPONSES.path: client.responses.create,
            MESSAGES.path: claude.messages.create,
        }
        read = []
        for one in create[spoken.path](**body):
            read.append(one.model_dump())
            event()
    return read


@every_dialect
async def test_no_sdk_sees_a_difference(start: Start, dialect: str) -> None:
    spoken, breaks = SPOKEN[dialect], Breaks(stopped)
    whole = answer(5, spoken)
    system = await alike(start, saying(whole), saying(whole))
    undisturbed = await asyncio.to_thread(_read, spoken, system.gateway.base_url, lambda: None)
    has, loop = count(1), asyncio.get_running_loop()

    def event() -> None:
        if next(has) == 4:
            loop.call_soon_threadsafe(breaks.now.set)

    for replica in system.replicas:
        replica.script = once(breaking(whole, 4, breaks), saying(whole))
    assert await asyncio.to_thread(_read, spoken, system.gateway.base_url, event) == undisturbed
    assert len(resumes_of(system)) == 1
