"""Native calls to asyncio tasks, and what the engine writes back.

One task for each call runs `engine.answer` with a sink of its own. What all sinks were given in one
turn of the loop goes to the native side by one `write_many`, as plain tuples. A call whose queue is
full there is told to wait until its room is posted; a call whose client is gone is told to leave.
Whatever goes wrong in one call fails that call alone.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from penstock.replica.calls import wire
from penstock.replica.calls.answers import UNFINISHED, Answerer
from penstock.replica.calls.inbox import Inbox, Kind
from penstock.replica.values import Call, EngineFacts, Failed, Finished, Head, TokenGroup, Usage
from penstock.v1 import inference_pb2

log = logging.getLogger(__name__)

_MOST_WRITES: Final = 256
"""Of one turn: more, by engines that never wait, are handed on at once, to hear who has to."""


class Writer(Protocol):
    """Takes writes by key, and tells which keys are to pause, to leave, or wrote nonsense."""

    def write_many(self, writes: list[wire.Write]) -> tuple[list[int], list[int], list[int]]:
        """See `_server.InferenceServer`."""


class _Batch:
    """What the calls of one turn of the loop have written."""

    def __init__(self, flush: Callable[[], None]) -> None:
        self.writes: list[wire.Write] = []
        self._flush = flush

    def add(self, write: wire.Write) -> None:
        self.writes.append(write)
        self.see_to_flush()

    def see_to_flush(self) -> None:
        """After each write that is the first of a turn, or more than a turn should bring."""
        if len(self.writes) == 1:
            asyncio.get_running_loop().call_soon(self._flush)
        elif len(self.writes) >= _MOST_WRITES:
            self._flush()


@dataclass(slots=True, eq=False)
class _Answer:
    """The sink of one native call. It ends once, and that is decided here alone."""

    _key: int
    _batch: _Batch
    _facts: EngineFacts
    task: asyncio.Task[None] | None = None
    _record: wire.Record = field(default_factory=wire.Record)
    _accepted: float = field(default_factory=time.monotonic)
    _open: bool = True
    _ended: bool = False
    _paused: bool = False
    _room: asyncio.Event | None = None
    _leave: Callable[[], None] | None = None
    _usage: Callable[[], Usage | None] = field(default_factory=lambda: _never_had)

    def accept(self, call: Call) -> None:
        """It is the answer to this."""
        self._record.request_id = call.request_id
        self._record.trace_id = wire.trace_id_of(call.traceparent)

    def head(self, head: Head) -> None:
        if self._open:
            # The first bytes come along with it, or at once.
            self._record.ttft_us = self._age_us()
            self._batch.add(wire.head_write(self._key, head, self._facts))

    def write(
        self, body: bytes, events: int = 1, groups: tuple[TokenGroup, ...] = (), tokens: int = 0
    ) -> bool:
        if not self._open:
            return True
        writes = self._batch.writes
        writes.append((self._key, body, events, groups, tokens))
        if not 1 < len(writes) < _MOST_WRITES:
            self._batch.see_to_flush()
        return self._paused

    async def room(self) -> None:
        if self._paused:
            self._room = self._room or asyncio.Event()
            await self._room.wait()
        else:
            await asyncio.sleep(0)

    def finish(self, finished: Finished) -> None:
        if self._open:
            self._record.total_us = self._age_us()
            self._end(wire.finished_write(self._key, finished, self._facts, self._record))

    def fail(self, failed: Failed) -> None:
        if self._open:
            self._end(wire.failed_write(self._key, failed, self._usage() or Usage()))

    def lose(self, failed: Failed) -> None:
        """The engine is lost. What it never had did not end it, and may be tried elsewhere."""
        had = self._usage() is not None
        self.fail(failed if had else replace(failed, retryable=True))

    def costs(self, usage: Callable[[], Usage | None]) -> None:
        self._usage = usage

    def when_gone(self, leave: Callable[[], None]) -> None:
        self._leave = leave

    def pause(self) -> None:
        """The native queue is full."""
        self._paused = self._open

    def resume(self) -> None:
        """The native queue has room, or nobody cares any more."""
        self._paused = False
        if self._room is not None:
            self._room.set()
            self._room = None

    def gone(self) -> None:
        """The client is gone, or does not want the rest."""
        self._close()
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()
        elif self.task is not None:
            self.task.cancel()

    def over(self) -> None:
        """The engine works on it no more. Who did not want the rest is told what it cost; where
        nobody asked for this end, it is a failure."""
        self.fail(_STOPPED)
        if not self._ended:
            self._end(wire.cancelled_write(self._key, self._usage() or Usage()))

    def _age_us(self) -> int:
        return int((time.monotonic() - self._accepted) * 1e6)

    def _end(self, write: wire.Write) -> None:
        self._ended = True
        self._batch.add(write)
        self._close()

    def _close(self) -> None:
        self._open = False
        self.resume()


class Bridge:
    """Answers the inbox's calls by `answer`, as tasks of the group it is given."""

    def __init__(
        self, writer: Writer, answer: Answerer, facts: EngineFacts, tasks: asyncio.TaskGroup
    ) -> None:
        self._writer = writer
        self._answer = answer
        self._facts = facts
        self._tasks = tasks
        self._running: dict[int, _Answer] = {}
        self._batch = _Batch(self._flush)

    def attach(self, inbox: Inbox) -> None:
        """Takes the calls that the inbox brings from now on."""
        inbox.listen(Kind.START, self._start)
        inbox.listen(Kind.CANCEL, self._cancel)
        inbox.listen(Kind.ROOM, self._room)

    def _start(self, key: int, payload: bytes) -> None:
        answer = _Answer(key, self._batch, self._facts)
        try:
            call = wire.call_of(inference_pb2.CallRequest.FromString(payload))
        except Exception as error:
            answer.fail(_failure_of(error))
            return
        answer.accept(call)
        self._running[key] = answer
        answer.task = self._tasks.create_task(self._run(answer, call))
        # Not in `_run`, which never begins where the cancel comes along with the start.
        answer.task.add_done_callback(lambda _: self._over(key))

    def fail_all(self, failed: Failed) -> None:
        """Ends every answer with this, and with what it cost; it is on its way on return."""
        for answer in self._running.values():
            answer.lose(failed)
        self._flush()

    def _over(self, key: int) -> None:
        self._running.pop(key).over()

    def _cancel(self, key: int, _: bytes) -> None:
        if answer := self._running.get(key):
            answer.gone()

    def _room(self, key: int, _: bytes) -> None:
        if answer := self._running.get(key):
            answer.resume()

    async def _run(self, answer: _Answer, call: Call) -> None:
        try:
            await self._answer(call, answer)
            answer.fail(UNFINISHED)
        except Exception as error:
            log.exception("call broke", extra={"request_id": call.request_id})
            answer.fail(_failure_of(error))

    def _flush(self) -> None:
        if not self._batch.writes:
            return
        writes, self._batch.writes = self._batch.writes, []
        full, gone, broken = self._writer.write_many(writes)
        for key in full:
            if answer := self._running.get(key):
                answer.pause()
        for key in gone:
            if answer := self._running.get(key):
                answer.gone()
        for key in broken:
            log.error("an engine wrote what cannot be sent", extra={"key": key})
            self._cancel(key, b"")


def _failure_of(error: Exception) -> Failed:
    """How a call ends that raised."""
    if isinstance(error, MemoryError):
        return _OUT_OF_MEMORY
    message = f"The engine failed: {type(error).__name__}: {error}"
    return Failed(500, "server_error", "engine_error", message)


def _never_had() -> None:
    """What a call has cost that has not got to an engine."""


_STOPPED: Final = Failed(
    503,
    "server_error",
    "engine_stopped",
    "The replica stopped working on this answer before its end.",
    retryable=True,
)
"""The end of an answer whose task was cancelled though its client is there."""

_OUT_OF_MEMORY: Final = Failed(
    503,
    "server_error",
    "oom_contained",
    "The replica had no memory left for this request; nothing else was harmed.",
    retryable=True,
    retry_after_ms=1000,
)
