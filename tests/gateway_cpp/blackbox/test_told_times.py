"""Waits, times and cached tokens, as the log line and a stream's metadata tell them: what happened.

Each time lies between two that the test takes itself, one that begins later or ends earlier, and
one around it.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import pytest

from penstock.v1 import inference_pb2 as inference
from tests.fakes.fake_replica import DONE, FakeCall, delta, last_delta, unary_chat
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.held import Held, busy, narrow, slow, waiting
from tests.gateway_cpp.blackbox.raw_http import RawClient, Response, chat
from tests.gateway_cpp.blackbox.test_admission import in_metadata
from tests.gateway_cpp.blackbox.test_headers import logged

INCLUDE = "x-penstock-metadata: include\r\n"
CACHED = 2  # of the three tokens of the prompt
STEP = 0.2  # seconds that the engine takes for the first token, and then for the others
SLACK = 50  # milliseconds in which a thread of a busy machine may be passed over


def now() -> float:
    """In milliseconds."""
    return time.monotonic() * 1000


class Working:
    """A script: an engine that takes a while for the first token and for the end."""

    def __init__(self) -> None:
        self.arrived = self.first = self.end = 0.0

    async def __call__(self, call: FakeCall) -> None:
        self.arrived = now()
        call.usage.cached_tokens = CACHED
        call.facts = inference.Head(cached_tokens=CACHED)
        await asyncio.sleep(STEP)
        self.first = now()
        if call.streamed:
            await call.send(delta("Hello"), tokens=1)
        await asyncio.sleep(STEP)
        self.end = now()
        if call.streamed:
            await call.send(last_delta() + DONE, events=2)
        else:
            await call.send(unary_chat("Hello"))
        await call.finish()


@dataclass(frozen=True, slots=True)
class Took:
    """How long something took, in milliseconds: no less, and no more."""

    least: float
    most: float

    def holds(self, told: object) -> None:
        """What is told lies between."""
        assert isinstance(told, int | float)
        assert self.least - 1 <= told <= self.most + SLACK, (told, self)


@dataclass(frozen=True, slots=True)
class Seen:
    """A request from outside: its answer, and how long its parts took."""

    answer: Response
    queue: Took
    ttft: Took
    total: Took


async def read(client: RawClient, *, stream: bool) -> tuple[Response, float, float]:
    """The answer, and when its first byte and its last one were there."""
    if not stream:
        answer = await client.response()
        return answer, now(), now()
    status, headers = await client.head()
    body = await client.chunk() or b""
    first = now()
    while data := await client.chunk():
        body += data
    return Response(status, headers, body, cut_off=data is None), first, now()


async def after_a_wait(system: System, data: bytes, *, stream: bool = True) -> Seen:
    """One request that has to wait for the only place, in which the engine then works."""
    held, working = Held(), Working()
    (replica,) = system.replicas
    replica.script = held
    async with busy(system) as ahead:
        replica.script = working
        sent = now()
        async with waiting(system, data) as (client,):
            queued = now()
            await system.reports(lambda _: True, "a report later")
            freed = now()
            held.let_go()
            answer, first, last = await read(client, stream=stream)
        assert (await ahead.response()).status == 200
    begun = working.first if stream else working.end
    return Seen(
        answer,
        queue=Took(freed - queued, working.arrived - sent),
        ttft=Took(begun - queued, first - sent),
        total=Took(working.end - queued, last - sent),
    )


async def learnt(start: Start) -> tuple[System, Took]:
    """A gateway with one place that has seen how long a call takes, and what it took."""
    system = await start(scripts=(slow(0.5),), deployment=narrow())
    began = now()
    assert (await system.ask(chat())).status == 200
    return system, Took(500, now() - began)


def tells(
    facts: dict[str, object], names: tuple[str, str, str, str], seen: Seen, call: Took
) -> None:
    """Wait, first token, whole time and estimate, by these names; `call`: what one takes."""
    wait, ttft, total, estimate = (facts[name] for name in names)
    seen.queue.holds(wait)
    seen.ttft.holds(ttft)
    seen.total.holds(total)
    # What was before it had begun shortly before, and was expected to take as long as the last one.
    Took(2, call.most).holds(estimate)
    assert estimate == int(seen.answer.headers["x-penstock-estimated-wait-ms"])


@pytest.mark.parametrize("stream", [False, True])
async def test_the_log_line_says_how_long_a_request_waited_and_what_was_cached(
    start: Start, stream: bool
) -> None:
    system, call = await learnt(start)
    seen = await after_a_wait(system, chat(stream=stream), stream=stream)
    line = await logged(system, seen.answer)
    assert line["outcome"] == "succeeded"
    tells(line, ("queue_wait_ms", "ttft_ms", "duration_ms", "estimated_wait_ms"), seen, call)
    tokens = (line["prompt_tokens"], line["completion_tokens"], line["cached_tokens"])
    assert tokens == (3, 2, CACHED)


async def test_metadata_says_how_long_a_stream_waited_and_what_was_cached(start: Start) -> None:
    system, call = await learnt(start)
    seen = await after_a_wait(system, chat(INCLUDE, stream=True))
    facts = in_metadata(seen.answer.body)
    tells(facts, ("queue_ms", "ttft_ms", "total_ms", "estimated_wait_ms"), seen, call)
    assert facts["cached_tokens"] == CACHED
    assert int(seen.answer.headers["x-penstock-prefix-hit"]) == CACHED


async def test_who_has_a_place_at_once_is_told_of_no_wait_and_of_nothing_cached(
    system: System,
) -> None:
    answer = await system.ask(chat(INCLUDE, stream=True))
    facts, line = in_metadata(answer.body), await logged(system, answer)
    at_once = Took(0, 0)
    for told, wait in ((facts, "queue_ms"), (line, "queue_wait_ms")):
        at_once.holds(told[wait])
        assert told["estimated_wait_ms"] == 0
        assert told["cached_tokens"] == 0
        assert told["ttft_ms"] != 0
