"""Native calls to asyncio tasks, and the engine's events back.

A task for each call runs `engine.answer`. What all tasks have to say in one turn of the loop goes
to the native side by one `write_many`. A call whose queue is full there pulls nothing from the
engine until its room is posted; a call whose client is gone is cancelled, which closes the engine's
iterator.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast

from penstock.replica import wire
from penstock.replica.engine import Call, Engine, EngineFacts, Event, Failed, Finished
from penstock.replica.inbox import Inbox, Kind
from penstock.v1 import inference_pb2

log = logging.getLogger(__name__)

# Events of one call in one turn, of an engine that has them all at hand.
_EVENTS_PER_TURN = 16


class Writer(Protocol):
    """Takes events by key, serialised, and tells which keys are to pause."""

    def write_many(self, events: Sequence[tuple[int, bytes]]) -> list[int]:
        """See `_server.InferenceServer`."""
        ...


@dataclass(slots=True)
class _Running:
    room: asyncio.Event = field(default_factory=asyncio.Event)
    unflushed: int = 0
    task: asyncio.Task[None] | None = None


class Bridge:
    """Answers the inbox's calls with an engine, as tasks of the group it is given."""

    def __init__(
        self, writer: Writer, engine: Engine, facts: EngineFacts, tasks: asyncio.TaskGroup
    ) -> None:
        self._writer = writer
        self._engine = engine
        self._facts = facts
        self._tasks = tasks
        self._running: dict[int, _Running] = {}
        self._outgoing: list[tuple[int, bytes]] = []

    def attach(self, inbox: Inbox) -> None:
        """Takes the calls that the inbox brings from now on."""
        inbox.listen(Kind.START, self._start)
        inbox.listen(Kind.CANCEL, self._cancel)
        inbox.listen(Kind.ROOM, self._room)

    def _start(self, key: int, payload: bytes) -> None:
        call = wire.call_of(inference_pb2.CallRequest.FromString(payload))
        running = _Running()
        running.room.set()
        self._running[key] = running
        running.task = self._tasks.create_task(self._run(key, running, call))

    def _cancel(self, key: int, _: bytes) -> None:
        if (running := self._running.get(key)) and running.task:
            running.task.cancel()

    def _room(self, key: int, _: bytes) -> None:
        if running := self._running.get(key):
            running.room.set()

    async def _run(self, key: int, running: _Running, call: Call) -> None:
        try:
            if not await self._answer(key, running, call):
                await self._write(key, running, _unfinished())
        except Exception as error:
            log.exception("call broke", extra={"request_id": call.request_id})
            await self._write(key, running, _broken(error))
        finally:
            del self._running[key]

    async def _answer(self, key: int, running: _Running, call: Call) -> bool:
        """Whether the engine's answer ended as answers do."""
        answer = cast("AsyncGenerator[Event, None]", self._engine.answer(call))
        async with contextlib.aclosing(answer) as events:
            async for event in events:
                await self._write(key, running, event)
                if isinstance(event, Finished | Failed):
                    return True
        return False

    async def _write(self, key: int, running: _Running, event: Event) -> None:
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outgoing.append((key, self._serialised(event)))
        running.unflushed += 1
        if running.unflushed >= _EVENTS_PER_TURN:
            await asyncio.sleep(0)
        await running.room.wait()

    def _serialised(self, event: Event) -> bytes:
        if isinstance(event, Finished):
            facts = self._facts
            return wire.finished_message(
                event, facts.backend, facts.backend_version, facts.model_version
            ).SerializeToString()
        return wire.event_message(event).SerializeToString()

    def _flush(self) -> None:
        events, self._outgoing = self._outgoing, []
        for key, _ in events:
            if running := self._running.get(key):
                running.unflushed = 0
        for key in self._writer.write_many(events):
            if running := self._running.get(key):
                running.room.clear()


def _unfinished() -> Failed:
    return Failed(500, "server_error", "engine_error", "The engine's answer stopped half-way.")


def _broken(error: Exception) -> Failed:
    return Failed(
        500, "server_error", "engine_error", f"The engine failed: {type(error).__name__}: {error}"
    )


__all__ = ["Bridge", "Writer"]
