"""One piece of work at a time, each to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

_T = TypeVar("_T")


class Whole:
    """A lock for work that must not end in the middle: what is stored and what is known would no
    longer be the same. Whoever asked for it may be cancelled; the work goes on to its end, and
    until then nobody else has the lock."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def do(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """What the work returns or raises, once it had its turn."""
        await self._lock.acquire()
        return await asyncio.shield(self._to_its_end(work))

    async def _to_its_end(self, work: Callable[[], Awaitable[_T]]) -> _T:
        try:
            return await work()
        finally:
            self._lock.release()
