"""The bridge with a fake engine behind it and real gRPC clients before it."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc.aio

from penstock.replica import _server
from penstock.replica.bridge import Bridge
from penstock.replica.engine import (
    AdapterSource,
    Call,
    Chunk,
    EngineFacts,
    Event,
    Failed,
    Finished,
    Head,
    LoadFigures,
    TokenGroup,
)
from penstock.replica.inbox import Inbox, Kind
from penstock.replica.presence import READY, Presence
from penstock.v1 import inference_pb2, inference_pb2_grpc

FACTS = EngineFacts("fake", "1.2", "weights-7", 128, 4, "hash")
HEAD = Head(200, "text/event-stream", prompt_tokens=3)
END = Finished(prompt_tokens=3, completion_tokens=2, finish_reasons=("stop",))

Answer = Callable[["FakeEngine", Call], AsyncIterator[Event]]


class FakeEngine:
    """An engine whose answers a test writes; tells how far each was pulled, and which closed."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.calls: list[Call] = []
        self.pulled = 0
        self.closed = asyncio.Event()

    async def start(self) -> EngineFacts:
        return FACTS

    async def answer(self, call: Call) -> AsyncIterator[Event]:
        self.calls.append(call)
        try:
            async for event in self._answer(self, call):
                self.pulled += 1
                yield event
        finally:
            self.closed.set()

    def load(self) -> LoadFigures:
        return LoadFigures()

    async def probe(self) -> None:
        return

    async def died(self) -> str:
        await asyncio.Event().wait()
        return ""

    async def add_adapter(self, adapter: AdapterSource) -> None:
        raise NotImplementedError

    async def remove_adapter(self, name: str) -> None:
        raise NotImplementedError

    def adapters(self) -> tuple[AdapterSource, ...]:
        return ()

    async def stop(self) -> None:
        return


@contextlib.asynccontextmanager
async def serving(engine: FakeEngine) -> AsyncIterator[Any]:
    """A client of a server whose calls the engine answers."""
    inbox = Inbox()
    server = _server.InferenceServer("127.0.0.1:0", inbox.native)
    inbox.open()
    try:
        async with asyncio.TaskGroup() as tasks:
            Bridge(server, engine, FACTS, tasks).attach(inbox)
            Presence(server, engine).enter(READY, FACTS)
            async with grpc.aio.insecure_channel(server.address) as channel:
                yield inference_pb2_grpc.InferenceStub(channel)  # type: ignore[no-untyped-call]
    finally:
        inbox.close()
        await asyncio.to_thread(server.stop, 0)


def request(**fields: object) -> inference_pb2.CallRequest:
    """A call with some fields set."""
    return inference_pb2.CallRequest(
        request_id="req_1",
        method="POST",
        path="/v1/chat/completions",
        body=b"{}",
        **fields,  # type: ignore[arg-type]
    )


async def all_events(stub: Any, **fields: object) -> list[inference_pb2.CallEvent]:
    """The events of one call."""
    return [event async for event in stub.Call(request(**fields), timeout=20)]


async def two_chunks(engine: FakeEngine, call: Call) -> AsyncIterator[Event]:
    yield HEAD
    yield Chunk(b"data: one\n\n", groups=(TokenGroup(0, (5, 6)),))
    yield Chunk(b"data: two\n\ndata: three\n\n", events=2, groups=(TokenGroup(0, (7,), "stop"),))
    yield END


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
    assert finished.usage.completion_tokens == 2
    assert list(finished.finish_reasons) == ["stop"]


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
    assert (call.tenant_salt, call.traceparent) == ("salt", "00-1-2-3")
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
    async def fails(engine: FakeEngine, call: Call) -> AsyncIterator[Event]:
        yield Failed(429, "rate_limit_error", "busy", "later", "p", "client", True, 250)

    async with serving(FakeEngine(fails)) as stub:
        (event,) = await all_events(stub)
    error = event.failed.error
    assert (error.status, error.type, error.code) == (429, "rate_limit_error", "busy")
    assert (error.message, error.param, error.retry_after_ms) == ("later", "p", 250)


async def test_an_engine_that_raises_fails_only_its_call() -> None:
    async def raises(engine: FakeEngine, call: Call) -> AsyncIterator[Event]:
        if call.adapter:
            raise RuntimeError("a bug")
        async for event in two_chunks(engine, call):
            yield event

    async with serving(FakeEngine(raises)) as stub:
        (event,) = await all_events(stub, adapter="x@1")
        assert (event.failed.error.status, event.failed.error.code) == (500, "engine_error")
        assert "a bug" in event.failed.error.message
        assert (await all_events(stub))[-1].HasField("finished")


async def test_an_answer_that_stops_half_way_does_not_end_cleanly() -> None:
    async def stops(engine: FakeEngine, call: Call) -> AsyncIterator[Event]:
        yield HEAD
        yield Chunk(b"data: one\n\n")

    async with serving(FakeEngine(stops)) as stub:
        events = await all_events(stub)
    assert events[-1].failed.error.code == "engine_error"


async def test_a_client_that_leaves_closes_the_engines_answer() -> None:
    async def endless(engine: FakeEngine, call: Call) -> AsyncIterator[Event]:
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
    async def flood(engine: FakeEngine, call: Call) -> AsyncIterator[Event]:
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
        assert 64 <= engine.pulled < 200, "a queue of 64 KiB, and a turn's events over it"
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
    """Returns when the engine was not pulled for a thousand turns of the loop."""
    quiet = 0
    while quiet < 1000:
        before = engine.pulled
        await asyncio.sleep(0)
        quiet = quiet + 1 if engine.pulled == before else 0


async def test_many_calls_at_once_each_get_their_own_answer() -> None:
    async def echo(engine: FakeEngine, call: Call) -> AsyncIterator[Event]:
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
    class Counting:
        def __init__(self) -> None:
            self.batches: list[int] = []

        def write_many(self, events: object) -> list[int]:
            self.batches.append(len(events))  # type: ignore[arg-type]
            return []

    writer = Counting()
    engine = FakeEngine(two_chunks)
    async with asyncio.TaskGroup() as tasks:
        bridge = Bridge(writer, engine, FACTS, tasks)
        for key in range(10):
            bridge._start(key, request().SerializeToString())
    assert writer.batches == [40]


def test_kinds_are_numbered_as_in_the_native_header() -> None:
    header = Path(__file__).parents[2] / "replica/native/inbox.h"
    named = re.findall(r"k(\w+) = (\d+),", header.read_text())
    assert [(kind.name, str(kind.value)) for kind in Kind] == [
        (kind.upper(), number) for kind, number in named
    ]
