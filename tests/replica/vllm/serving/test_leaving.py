"""Clients that leave, wait too long or are too many: the engine is free again at once."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from typing import Any

import pytest

from penstock.replica.calls.answers import events_of
from penstock.replica.values import Chunk, Head
from penstock.replica.vllm.engine import VllmEngine
from tests.replica.vllm.talking import (
    COMPLETIONS,
    MESSAGES,
    ON_THE_SHARED_ENGINE,
    RESPONSES,
    ask,
    body,
    call,
    chat,
    long_request,
    until,
)

pytestmark = ON_THE_SHARED_ENGINE

_LONG: dict[str, Any] = {"max_tokens": 3000, "ignore_eos": True}


def _unfinished(engine: VllmEngine) -> int:
    assert engine._up is not None
    count: int = engine._up.launched.llm.get_num_unfinished_requests()
    return count


async def _freed(engine: VllmEngine) -> None:
    """Nothing is left of a request within a second: neither here nor in the engine's gauges."""
    await until(lambda: _unfinished(engine) == 0, "the request is forgotten", 1.0)
    # The gauges move with the engine's steps, so something has to run for them to be heard.
    await ask(engine, chat(max_tokens=2))
    await until(lambda: engine.load().running == 0, "the engine runs nothing", 1.0)


async def test_closing_a_stream_frees_the_engine(engine: VllmEngine) -> None:
    async with aclosing(events_of(engine.answer, call(chat(stream=True, **_LONG)))) as events:
        assert isinstance(await anext(events), Head)
        assert isinstance(await anext(events), Chunk)
        assert _unfinished(engine) == 1
    await _freed(engine)


@pytest.mark.parametrize("stream", [False, True])
async def test_cancelling_before_the_first_byte_frees_the_engine(
    engine: VllmEngine, *, stream: bool
) -> None:
    async with asyncio.TaskGroup() as tasks:
        consumer = tasks.create_task(ask(engine, chat(stream=stream, **_LONG)))
        await until(lambda: _unfinished(engine) == 1, "the request is in the engine")
        consumer.cancel()
    await _freed(engine)


@pytest.mark.parametrize("path", [COMPLETIONS, RESPONSES, MESSAGES])
@pytest.mark.parametrize("stream", [False, True])
async def test_leaving_frees_the_engine_on_every_endpoint_that_generates(
    engine: VllmEngine, path: str, *, stream: bool
) -> None:
    async with asyncio.TaskGroup() as tasks:
        consumer = tasks.create_task(ask(engine, long_request(path, stream=stream), path))
        await until(lambda: engine.load().running == 1, "the request is in the engine")
        consumer.cancel()
    await _freed(engine)


async def test_cancelling_during_a_long_prefill_frees_the_engine(engine: VllmEngine) -> None:
    content = body(prompt=[[9] * 3500] * 16, max_tokens=5)
    async with asyncio.TaskGroup() as tasks:
        consumer = tasks.create_task(ask(engine, content, COMPLETIONS))
        await until(lambda: _unfinished(engine) > 8, "the requests are in the engine")
        consumer.cancel()
    await _freed(engine)


async def test_many_that_leave_at_once_leave_nothing(engine: VllmEngine) -> None:
    async with asyncio.TaskGroup() as tasks:
        consumers = [
            tasks.create_task(ask(engine, chat(stream=i % 2 == 0, **_LONG))) for i in range(32)
        ]
        await until(lambda: _unfinished(engine) == 32, "all are in the engine")
        for consumer in consumers:
            consumer.cancel()
    await _freed(engine)


async def test_a_deadline_ends_the_call_and_frees_the_engine(engine: VllmEngine) -> None:
    began = time.monotonic()
    failed = (await ask(engine, chat(**_LONG), deadline_ms=100)).failed
    assert (failed.status, failed.code) == (504, "deadline_exceeded")
    assert time.monotonic() - began < 2.0
    await _freed(engine)


async def test_a_slow_reader_gets_everything_in_fewer_pieces(engine: VllmEngine) -> None:
    whole = await ask(engine, chat(max_tokens=200, ignore_eos=True))
    text_events, ids = 0, 0
    content = chat(max_tokens=200, ignore_eos=True, stream=True)
    async with aclosing(events_of(engine.answer, call(content, token_groups=True))) as events:
        async for event in events:
            if isinstance(event, Chunk):
                text_events += event.events
                ids += sum(len(group.token_ids) for group in event.groups)
            if isinstance(event, Head):
                # Reads on only when the engine is through with the request.
                await until(lambda: _unfinished(engine) == 0, "the engine is done")
    assert ids == whole.finished.completion_tokens == 200
    assert text_events < 100
