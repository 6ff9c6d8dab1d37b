"""Work for large requests, done beside the loop that answers everybody: reading them, measuring
them, writing what comes of them.

One thread for all of it, since all of it holds Python's lock: tenants take turns at it, and the
calls of each. The loop has the lock again when it wants it, as soon as the thread is between two
steps of Python; what runs long inside one call of C (JSON, pydantic) has to be cut for that.

vLLM does the rest of a large request on the loop itself, some 20 ms of it. One large call of each
tenant is made ready at a time, so that the loop gets to everybody else between two of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from contextvars import copy_context
from functools import partial
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from penstock.replica.vllm.fairness.turns import Turns
from penstock.replica.vllm.serving.tap import CURRENT, CallTap, owner

T = TypeVar("T")

_MEDIA: Final = (b"image", b"audio", b"video")
_MEDIA_S: Final = 0.25


class Aside:
    """The thread. `large`: bytes of a body from which on a call's work is done there."""

    def __init__(self, large: int) -> None:
        self._large = large
        self.turns = Turns(ThreadPoolExecutor(1, "large-requests"), owner, 1)
        self._locks = WeakValueDictionary[Hashable, asyncio.Lock]()

    def takes_call(self) -> bool:
        """Whether the current call is a large one."""
        tap = CURRENT.get()
        return tap is not None and len(tap.call.body) > self._large

    @asynccontextmanager
    async def made_ready(self, tap: CallTap) -> AsyncIterator[None]:
        """Waits until no other large call of the tenant is being made ready. This one then is,
        until the engine has it or the block ends; one that may bring pictures or sounds for a
        quarter of a second, since they may have to be fetched."""
        lock = self._locks.setdefault(tap.call.tenant, asyncio.Lock())
        await lock.acquire()
        with ExitStack() as ready:
            ready.callback(lock.release)
            tap.when_aboard = ready.close
            if any(kind in tap.call.body for kind in _MEDIA):
                asyncio.get_running_loop().call_later(_MEDIA_S, ready.close)
            yield

    async def run(self, work: Callable[..., T], *args: object) -> T:
        """The work's result; of a small call it is done here and now."""
        return await self.surely(work, *args) if self.takes_call() else work(*args)

    async def surely(self, work: Callable[..., T], *args: object) -> T:
        """The same of a call of any size."""
        # The work knows the call that it is done for.
        run: Callable[[], T] = partial(copy_context().run, work, *args)
        return await asyncio.get_running_loop().run_in_executor(self.turns, run)
