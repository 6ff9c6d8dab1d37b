"""What goes wrong in one call, and costs no other. A fake engine behind the bridge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import cast

from penstock.replica.calls.bridge import Bridge
from penstock.replica.engine import Sink
from penstock.replica.values import Call, Chunk, Event, Failed, Usage
from penstock.v1 import common_pb2
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


async def test_an_engine_that_raises_fails_only_its_call() -> None:
    async def raises(call: Call) -> AsyncIterator[Event]:
        if call.adapter:
            raise RuntimeError("a bug")
        async for event in two_chunks(call):
            yield event

    async with serving(FakeEngine(raises)) as stub:
        (event,) = await all_events(stub, adapter="x@1")
        assert (event.failed.error.status, event.failed.error.code) == (500, "engine_error")
        assert "a bug" in event.failed.error.message
        assert (await all_events(stub))[-1].HasField("finished")


async def test_an_answer_that_stops_half_way_does_not_end_cleanly() -> None:
    async def stops(call: Call) -> AsyncIterator[Event]:
        yield HEAD
        yield Chunk(b"data: one\n\n")

    async with serving(FakeEngine(stops)) as stub:
        events = await all_events(stub)
    assert events[-1].failed.error.code == "engine_error"


async def test_a_cancel_that_comes_along_with_its_start_leaves_nothing() -> None:
    engine = FakeEngine(two_chunks)
    async with asyncio.TaskGroup() as tasks:
        bridge = Bridge(Paper(), engine.answer, FACTS, tasks)
        bridge._start(1, request().SerializeToString())
        bridge._cancel(1, b"")
    assert not bridge._running
    assert not engine.calls


class _LastsUntil(FakeEngine):
    """Answers nothing; what it has had of a call is told by the call's adapter."""

    def __init__(self) -> None:
        super().__init__(two_chunks)
        self.end = asyncio.Event()

    async def answer(self, call: Call, sink: Sink) -> None:
        if call.adapter == "had@1":
            sink.costs(lambda: Usage(7, 2))
        elif call.adapter == "tokenized@1":
            sink.costs(lambda: None)
        await self.end.wait()


async def test_of_a_lost_engine_only_calls_that_it_never_had_may_be_tried_elsewhere() -> None:
    paper, engine = Paper(), _LastsUntil()
    async with asyncio.TaskGroup() as tasks:
        bridge = Bridge(paper, engine.answer, FACTS, tasks)
        for key, adapter in enumerate(("had@1", "tokenized@1", "awaited@1")):
            bridge._start(key, request(adapter=adapter).SerializeToString())
        await asyncio.sleep(0)
        bridge.fail_all(Failed(503, "server_error", "engine_dead", "The engine died"))
        engine.end.set()
    failed = {key: event.failed for key, event in paper.ends().items()}
    told = {
        key: (one.error.code, one.error.retry, one.usage.prompt_tokens)
        for key, one in failed.items()
    }
    never, elsewhere = common_pb2.RETRY_NEVER, common_pb2.RETRY_BEFORE_FIRST_TOKEN
    assert told == {
        0: ("engine_dead", never, 7),
        1: ("engine_dead", elsewhere, 0),
        2: ("engine_dead", elsewhere, 0),
    }


async def test_a_task_that_is_cancelled_though_its_client_is_there_is_a_failure() -> None:
    paper, engine = Paper(), _LastsUntil()
    async with asyncio.TaskGroup() as tasks:
        bridge = Bridge(paper, engine.answer, FACTS, tasks)
        for key in (1, 2):
            bridge._start(key, request().SerializeToString())
        await asyncio.sleep(0)
        bridge._cancel(2, b"")
        task = bridge._running[1].task
        assert task
        task.cancel()
    ends = paper.ends()
    assert ends[1].failed.error.code == "engine_stopped"
    assert ends[1].failed.error.retry == common_pb2.RETRY_BEFORE_FIRST_TOKEN
    assert ends[2].HasField("cancelled")


async def test_a_call_that_cannot_be_read_is_the_only_one_to_fail() -> None:
    paper = Paper()
    async with asyncio.TaskGroup() as tasks:
        bridge = Bridge(paper, FakeEngine(two_chunks).answer, FACTS, tasks)
        bridge._start(1, b"\xff")
        bridge._start(2, request().SerializeToString())
    ends = paper.ends()
    assert ends[1].HasField("failed")
    assert ends[2].HasField("finished")


async def test_a_lack_of_memory_fails_one_call_and_says_that_it_may_be_tried_again() -> None:
    async def too_large(call: Call) -> AsyncIterator[Event]:
        if call.adapter:
            raise MemoryError
        async for event in two_chunks(call):
            yield event

    async with serving(FakeEngine(too_large)) as stub:
        (event,) = await all_events(stub, adapter="x@1")
        assert (event.failed.error.status, event.failed.error.code) == (503, "oom_contained")
        assert event.failed.error.retry == common_pb2.RETRY_BEFORE_FIRST_TOKEN
        assert (await all_events(stub))[-1].HasField("finished")


async def test_a_write_that_cannot_be_sent_fails_its_call_alone() -> None:
    async def nonsense(call: Call) -> AsyncIterator[Event]:
        yield HEAD
        await asyncio.sleep(0)
        yield Chunk(cast("bytes", "a str") if call.adapter else b"bytes")
        yield END

    async with serving(FakeEngine(nonsense)) as stub:
        bad, *good = await asyncio.gather(
            all_events(stub, adapter="x@1"), *(all_events(stub) for _ in range(5))
        )
    assert bad[-1].failed.error.code == "engine_error"
    assert [events[-1].HasField("finished") for events in good] == [True] * 5


async def test_text_that_is_no_text_loses_a_letter_and_nothing_else() -> None:
    async def fails(call: Call) -> AsyncIterator[Event]:
        yield Failed(400, "invalid_request_error", "invalid_value", "bad word \ud800")

    async with serving(FakeEngine(fails)) as stub:
        (event,) = await all_events(stub)
    assert event.failed.error.message == "bad word ?"


async def test_an_answer_ends_once() -> None:
    async def ends_thrice(call: Call) -> AsyncIterator[Event]:
        yield HEAD
        yield END
        yield Chunk(b"more")
        yield Failed(500, "server_error", "engine_error", "after all")

    async with serving(FakeEngine(ends_thrice)) as stub:
        events = await all_events(stub)
    assert [event.HasField("finished") for event in events] == [True]
    assert not events[0].chunk.body
