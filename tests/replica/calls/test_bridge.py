"""The bridge with a fake engine behind it and real gRPC clients before it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

from penstock.replica.calls.bridge import Bridge
from penstock.replica.calls.inbox import Kind
from penstock.replica.engine import Sink
from penstock.replica.values import Call, Chunk, Event, Failed, TokenGroup
from penstock.v1 import inference_pb2
from tests.fakes.bridged import (
    END,
    FACTS,
    HEAD,
    FakeEngine,
    Paper,
    all_events,
    request,
    serving,
    two_chunks,
)


async def test_an_answer_reaches_the_client_with_what_made_it() -> None:
    engine = FakeEngine(two_chunks)
    async with serving(engine) as stub:
        events = await all_events(stub)
    assert b"".join(e.chunk.body for e in events) == b"data: one\n\ndata: two\n\ndata: three\n\n"
    assert sum(e.chunk.events for e in events) == 3
    groups = [group for e in events for group in e.chunk.groups]
    assert [list(group.token_ids) for group in groups] == [[5, 6], [7]]
    assert groups[-1].finish_reason == "stop"
    assert events[0].head.prompt_tokens == 3
    finished = events[-1].finished
    assert (finished.backend, finished.backend_version) == ("fake", "1.2")
    assert finished.model_version == "weights-7"
    assert (events[0].head.model, finished.model) == ("mini", "mini")
    assert finished.usage.completion_tokens == 2
    assert list(finished.finish_reasons) == ["stop"]


async def test_what_was_written_tells_how_many_tokens_were_made_for_it() -> None:
    async def counts(call: Call) -> AsyncIterator[Event]:
        yield HEAD
        for tokens in (2, 3):
            yield Chunk(b"data: more\n\n", tokens=tokens)
        yield END

    async with serving(FakeEngine(counts)) as stub:
        events = await all_events(stub)
    assert sum(e.chunk.tokens for e in events) == 5


async def test_the_engine_sees_every_field_of_the_call() -> None:
    engine = FakeEngine(two_chunks)
    async with serving(engine) as stub:
        await all_events(
            stub,
            model="m:pirate",
            adapter="pirate@1",
            priority=-3,
            deadline_ms=5,
            tenant_salt="salt",
            tenant="acme",
            traceparent="00-1-2-3",
            token_groups=True,
            resume=inference_pb2.Resume(
                groups=[inference_pb2.TokenGroup(token_ids=[1, 2])], events=4, created=9
            ),
        )
    (call,) = engine.calls
    assert (call.request_id, call.method, call.path) == ("req_1", "POST", "/v1/chat/completions")
    assert (call.body, call.model, call.adapter) == (b"{}", "m:pirate", "pirate@1")
    assert (call.priority, call.deadline_ms) == (-3, 5)
    assert (call.tenant, call.tenant_salt, call.traceparent) == ("acme", "salt", "00-1-2-3")
    assert call.token_groups
    assert call.resume
    assert call.resume.groups == (TokenGroup(0, (1, 2)),)
    assert (call.resume.events, call.resume.created) == (4, 9)


async def test_a_call_without_resume_resumes_nothing() -> None:
    engine = FakeEngine(two_chunks)
    async with serving(engine) as stub:
        await all_events(stub)
    assert engine.calls[0].resume is None


async def test_a_failure_keeps_its_fields() -> None:
    async def fails(call: Call) -> AsyncIterator[Event]:
        yield Failed(429, "rate_limit_error", "busy", "later", "p", "client", True, 250)

    async with serving(FakeEngine(fails)) as stub:
        (event,) = await all_events(stub)
    error = event.failed.error
    assert (error.status, error.type, error.code) == (429, "rate_limit_error", "busy")
    assert (error.message, error.param, error.retry_after_ms) == ("later", "p", 250)


async def test_a_client_that_leaves_closes_the_engines_answer() -> None:
    async def endless(call: Call) -> AsyncIterator[Event]:
        yield HEAD
        yield Chunk(b"data: one\n\n")
        await asyncio.Event().wait()

    engine = FakeEngine(endless)
    async with serving(engine) as stub:
        call = stub.Call(request())
        await call.read()
        assert not engine.closed.is_set()
        call.cancel()
        async with asyncio.timeout(10):
            await engine.closed.wait()


async def test_a_client_without_credit_holds_the_engine_back() -> None:
    async def flood(call: Call) -> AsyncIterator[Event]:
        yield HEAD
        for _ in range(10_000):
            yield Chunk(b"x" * 1024)
        yield END

    engine = FakeEngine(flood)
    async with serving(engine) as stub:
        frames: asyncio.Queue[inference_pb2.ClientFrame] = asyncio.Queue()
        start = inference_pb2.Start(call_id=1, request=request(), initial_credit_bytes=1)
        frames.put_nowait(inference_pb2.ClientFrame(starts=[start]))

        async def outgoing() -> AsyncIterator[inference_pb2.ClientFrame]:
            while True:
                yield await frames.get()

        stream = stub.Session(outgoing())
        received = len((await stream.read()).events[0].chunk.body)
        await _settled(engine)
        assert 64 <= engine.written < 400, "a queue of 64 KiB, and a turn's writes over it"
        credit = inference_pb2.Credit(call_id=1, bytes=1 << 30)
        frames.put_nowait(inference_pb2.ClientFrame(credits=[credit]))
        finished = False
        while not finished:
            for event in (await stream.read()).events:
                received += len(event.chunk.body)
                finished = event.HasField("finished")
        stream.cancel()
    assert received == 10_000 * 1024


async def _settled(engine: FakeEngine) -> None:
    """Returns when the engine wrote nothing for a thousand turns of the loop."""
    quiet = 0
    while quiet < 1000:
        before = engine.written
        await asyncio.sleep(0)
        quiet = quiet + 1 if engine.written == before else 0


async def test_many_calls_at_once_each_get_their_own_answer() -> None:
    async def echo(call: Call) -> AsyncIterator[Event]:
        yield HEAD
        for _ in range(20):
            await asyncio.sleep(0)
            yield Chunk(call.model.encode())
        yield END

    async with serving(FakeEngine(echo)) as stub:
        answers = await asyncio.gather(*(all_events(stub, model=f"<{i}>") for i in range(100)))
    for i, events in enumerate(answers):
        assert b"".join(e.chunk.body for e in events) == f"<{i}>".encode() * 20


async def test_what_one_turn_brings_is_written_at_once() -> None:
    paper = Paper()
    async with asyncio.TaskGroup() as tasks:
        bridge = Bridge(paper, FakeEngine(two_chunks).answer, FACTS, tasks)
        for key in range(10):
            bridge._start(key, request().SerializeToString())
    assert [len(batch) for batch in paper.batches] == [40]


async def test_an_engine_that_asks_for_it_is_told_that_the_client_is_gone() -> None:
    class Gentle(FakeEngine):
        async def answer(self, call: Call, sink: Sink) -> None:
            gone = asyncio.Event()
            sink.when_gone(gone.set)
            sink.head(HEAD)
            sink.write(b"data: one\n\n")
            await gone.wait()
            self.closed.set()

    engine = Gentle(two_chunks)
    async with serving(engine) as stub:
        call = stub.Call(request())
        await call.read()
        call.cancel()
        async with asyncio.timeout(10):
            await engine.closed.wait()


def test_kinds_are_numbered_as_in_the_native_header() -> None:
    header = Path(__file__).parents[3] / "replica/native/inbox.h"
    named = re.findall(r"k(\w+) = (\d+),", header.read_text())
    assert [(kind.name, str(kind.value)) for kind in Kind] == [
        (kind.upper(), number) for kind, number in named
    ]
