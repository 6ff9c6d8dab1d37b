"""What the engine has said and the caller has not taken yet: bounded, in order, one of each call.

The engine's side awaits `put`, which waits while the box is full: that is what holds vLLM's serving
layer back, and vLLM then merges the tokens that come meanwhile. The caller's side awaits `take` and
gets all that is there at once. Both sides run in one asyncio loop; nothing here is thread-safe.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from penstock.replica.engine import Failed, TokenGroup

CAPACITY: Final = 16
"""Events that lie in the box before its writer waits."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What lay in the box: bytes of whole events, and what came after them, if anything did."""

    body: bytes
    events: int
    groups: tuple[TokenGroup, ...]
    ended: bool
    failure: Failed | None


class Outbox:
    """The box. It ends once: by `end` or by `fail`, whichever is first."""

    def __init__(self) -> None:
        self._bodies: list[bytes] = []
        self._groups: list[TokenGroup] = []
        self._ended = False
        self._failure: Failed | None = None
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    async def put(self, body: bytes, groups: list[TokenGroup]) -> None:
        """Adds one event; waits first while the box is full. After the end it drops the event."""
        if not self._room.is_set():
            await self._room.wait()
        if self._ended:
            return
        self._bodies.append(body)
        self._groups += groups
        if len(self._bodies) >= CAPACITY:
            self._room.clear()
        self._news.set()

    def end(self) -> None:
        """Nothing more will come, and all went well."""
        self._finish(None)

    def fail(self, failure: Failed) -> None:
        """Nothing more will come, for this reason."""
        self._finish(failure)

    async def take(self) -> Batch:
        """Everything there is; waits until there is something."""
        await self._news.wait()
        batch = Batch(
            b"".join(self._bodies),
            len(self._bodies),
            tuple(self._groups),
            self._ended,
            self._failure,
        )
        self._bodies.clear()
        self._groups.clear()
        self._room.set()
        if not self._ended:
            self._news.clear()
        return batch

    def _finish(self, failure: Failed | None) -> None:
        if self._ended:
            return
        self._ended = True
        self._failure = failure
        self._news.set()
        self._room.set()


__all__ = ["CAPACITY", "Batch", "Outbox"]
