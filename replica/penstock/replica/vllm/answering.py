"""One call from its body to its last event, over the app that vLLM serves with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from typing import Final

from penstock.replica.engine import Call, Chunk, Event
from penstock.replica.vllm import errors
from penstock.replica.vllm.asgi import App, Exchange
from penstock.replica.vllm.outbox import Batch
from penstock.replica.vllm.tap import CallTap

_PARTING_S: Final = 2.0
"""How long vLLM gets to notice that the client is gone; it takes milliseconds."""


async def answer(app: App, call: Call) -> AsyncGenerator[Event, None]:
    """The call's events. Closing the generator, or cancelling who waits on it, aborts the call.

    The app runs in a task of its own, since vLLM only learns that a client is gone by being told
    so on its `receive`: cancelling the app's task leaves its request running in the engine.
    """
    tap = CallTap(call)
    exchange = Exchange(app, tap)
    deadline = _deadline(exchange, call.deadline_ms)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(exchange.run())
        try:
            first = True
            while True:
                batch = await exchange.outbox.take()
                for event in _events(exchange, tap, batch, first=first):
                    yield event
                first = False
                if batch.ended:
                    return
        except GeneratorExit:
            # Not let out into the TaskGroup, which would wrap it up in an error.
            return
        finally:
            if deadline is not None:
                deadline.cancel()
            await _part(exchange, task)


def _events(exchange: Exchange, tap: CallTap, batch: Batch, *, first: bool) -> Iterator[Event]:
    """What one batch means; the head goes before the first, unless that is a failure alone."""
    if first and (batch.events or not batch.failure):
        yield tap.head(exchange.status, exchange.content_type)
    if batch.events:
        yield Chunk(batch.body, batch.events, batch.groups)
    if batch.ended:
        yield batch.failure or tap.finished()


async def _part(exchange: Exchange, task: asyncio.Task[None]) -> None:
    exchange.hang_up()
    try:
        await asyncio.wait((task,), timeout=_PARTING_S)
    finally:
        task.cancel()


def _deadline(exchange: Exchange, deadline_ms: int) -> asyncio.TimerHandle | None:
    if not deadline_ms:
        return None
    loop = asyncio.get_running_loop()
    failure = errors.too_late(deadline_ms)
    return loop.call_later(deadline_ms / 1000, exchange.outbox.fail, failure)


__all__ = ["answer"]
