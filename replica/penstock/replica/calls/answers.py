"""An answer as events that somebody reads in this process: the replica's own checks, and tools."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, Final

from penstock.replica.engine import Sink
from penstock.replica.values import Call, Chunk, Event, Failed, Finished, Head, TokenGroup, Usage

Answerer = Callable[[Call, Sink], Coroutine[Any, Any, None]]
"""What answers a call: `Engine.answer`."""

_CAPACITY: Final = 16  # events that wait for the reader before the engine is told to
_PARTING_S: Final = 2.0  # how long an engine gets to notice that its reader left


class EventSink:
    """A sink that keeps what is written until `take`."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._ended = False
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._leave: Callable[[], None] | None = None

    def head(self, head: Head) -> None:
        """See `Sink`."""
        self._add(head)

    def write(
        self, body: bytes, events: int = 1, groups: tuple[TokenGroup, ...] = (), tokens: int = 0
    ) -> bool:
        """See `Sink`."""
        self._add(Chunk(body, events, groups, tokens))
        if len(self._events) >= _CAPACITY and not self._ended:
            self._room.clear()
        return self._ended or not self._room.is_set()

    async def room(self) -> None:
        """See `Sink`."""
        await self._room.wait()
        await asyncio.sleep(0)

    def finish(self, finished: Finished) -> None:
        """See `Sink`."""
        self._end(finished)

    def fail(self, failed: Failed) -> None:
        """See `Sink`."""
        self._end(failed)

    def costs(self, usage: Callable[[], Usage | None]) -> None:
        """See `Sink`; nobody here asks."""

    def when_gone(self, leave: Callable[[], None]) -> None:
        """See `Sink`."""
        self._leave = leave

    async def take(self) -> Event:
        """The next event; waits for it."""
        await self._news.wait()
        event = self._events.popleft()
        self._room.set()
        if not self._events:
            self._news.clear()
        return event

    def has_news(self) -> bool:
        """Whether `take` would not wait."""
        return self._news.is_set()

    def leave(self, task: asyncio.Task[None]) -> None:
        """The reader is gone; `task` is the one that answers."""
        self._ended = True
        self._room.set()
        if self._leave is None:
            task.cancel()
        else:
            self._leave()

    def _add(self, event: Event) -> None:
        if not self._ended:
            self._events.append(event)
            self._news.set()

    def _end(self, end: Finished | Failed) -> None:
        self._add(end)
        self._ended = True
        self._room.set()


async def events_of(answer: Answerer, call: Call) -> AsyncGenerator[Event, None]:
    """The answer's events, to its end. Closing the generator, or cancelling who waits on it, tells
    the engine that the reader is gone."""
    sink = EventSink()
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(_answered(answer, call, sink))
        try:
            while True:
                event = await sink.take()
                yield event
                if isinstance(event, Finished | Failed):
                    return
        except GeneratorExit:
            # Not let out into the TaskGroup, which would wrap it up in an error.
            return
        finally:
            sink.leave(task)
            try:
                await asyncio.wait((task,), timeout=_PARTING_S)
            finally:
                task.cancel()


async def _answered(answer: Answerer, call: Call, sink: EventSink) -> None:
    await answer(call, sink)
    sink.fail(UNFINISHED)


UNFINISHED: Final = Failed(
    500, "server_error", "engine_error", "The engine's answer stopped half-way."
)
"""The end of an answer that has none."""
