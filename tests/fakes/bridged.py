"""The bridge between a fake engine, whose answers a test writes, and real gRPC clients."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc.aio

from penstock.replica import _server
from penstock.replica.adapters.table import AdapterTable
from penstock.replica.calls import wire
from penstock.replica.calls.bridge import Bridge
from penstock.replica.calls.inbox import Inbox
from penstock.replica.engine import Sink, Sleepless, Unmoved, Unresumed
from penstock.replica.reporting.presence import Presence
from penstock.replica.values import (
    Call,
    Chunk,
    Death,
    EngineFacts,
    EngineKind,
    Event,
    Finished,
    Head,
    LoadFigures,
    TokenGroup,
)
from penstock.v1 import inference_pb2, inference_pb2_grpc
from tests.fakes.adapter_weights import no_adapters
from tests.fakes.sinks import write

FACTS = EngineFacts("fake", "1.2", "weights-7", 128, 4, "hash", model="/srv/models/mini")
HEAD = Head(200, "text/event-stream", prompt_tokens=3)
END = Finished(prompt_tokens=3, completion_tokens=2, finish_reasons=("stop",))

Answer = Callable[[Call], AsyncIterator[Event]]


class FakeEngine(Sleepless, Unmoved, Unresumed):
    """An engine whose answers a test writes; tells how far they came, and when one is over."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.calls: list[Call] = []
        self.written = 0
        self.closed = asyncio.Event()
        self._adapters = no_adapters()

    async def start(self) -> EngineFacts:
        return FACTS

    async def answer(self, call: Call, sink: Sink) -> None:
        self.calls.append(call)
        try:
            async for event in self._answer(call):
                self.written += 1
                if write(event, sink):
                    await sink.room()
        finally:
            self.closed.set()

    def load(self) -> LoadFigures:
        return LoadFigures()

    def watch(self, changed: Callable[[], None]) -> None:
        return

    def cpu_seconds(self) -> float:
        return 0.0

    async def metrics(self) -> str:
        return ""

    def kind(self) -> EngineKind:
        return EngineKind.TEXT

    async def pool(self, text: str, *, priority: int = 0) -> int:
        raise NotImplementedError

    async def reach(self) -> None:
        return

    async def probe(self) -> None:
        return

    async def died(self) -> Death:
        await asyncio.Event().wait()
        return Death("")

    @property
    def adapters(self) -> AdapterTable:
        return self._adapters

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
            Bridge(server, engine.answer, FACTS, tasks).attach(inbox)
            Presence(server, engine).loaded(FACTS)
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


async def two_chunks(call: Call) -> AsyncIterator[Event]:
    yield HEAD
    yield Chunk(b"data: one\n\n", groups=(TokenGroup(0, (5, 6)),))
    yield Chunk(b"data: two\n\ndata: three\n\n", events=2, groups=(TokenGroup(0, (7,), "stop"),))
    yield END


class Paper:
    """A writer that keeps what it is given, and finds nothing wrong with it."""

    def __init__(self) -> None:
        self.batches: list[list[wire.Write]] = []

    def write_many(self, writes: list[wire.Write]) -> tuple[list[int], list[int], list[int]]:
        self.batches.append(list(writes))
        return [], [], []

    def ends(self) -> dict[int, inference_pb2.CallEvent]:
        """The last of the messages that were written to each call."""
        told = (write for batch in self.batches for write in batch if len(write) == 2)
        return {key: inference_pb2.CallEvent.FromString(event) for key, event in told}
