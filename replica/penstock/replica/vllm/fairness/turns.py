"""What calls share, taken in turns: the tokenizer's thread, and the engine's steps.

One call may bring thousands of texts, and one tenant hundreds of calls. vLLM would tokenize all of
them before the next one's first, and give them all to its engine at once. Pure: threads and
asyncio, no vLLM.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from concurrent.futures import Executor, Future
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, TypeVar
from weakref import WeakSet

Owner = tuple[Hashable, Hashable]
"""A tenant, and a call of it."""

_Piece = tuple[Future[Any], Callable[[], Any]]
T = TypeVar("T")


class Turns(Executor):
    """Runs what is submitted on another executor: one piece of each tenant in turn, and of a
    tenant's calls likewise.

    `owner`: asked at each submission, on behalf of which tenant it is, and of which call.
    `workers`: pieces at once.
    """

    def __init__(self, inner: Executor, owner: Callable[[], Owner], workers: int) -> None:
        self._inner = inner
        self._owner = owner
        self._idle = workers
        self._lock = threading.Lock()
        self._waiting: dict[Hashable, dict[Hashable, deque[_Piece]]] = {}
        self._forgotten = WeakSet[Hashable]()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See `Executor`."""
        future: Future[Any] = Future()
        tenant, call = self._owner()
        with self._lock:
            if call in self._forgotten:
                future.cancel()
                return future
            calls = self._waiting.setdefault(tenant, {})
            calls.setdefault(call, deque()).append((future, partial(fn, *args, **kwargs)))
            wake = self._idle > 0
            self._idle -= wake
        if wake:
            self._begin_work()
        return future

    def _begin_work(self) -> None:
        try:
            self._inner.submit(self._work)
        except RuntimeError as error:  # it is shut down
            with self._lock:
                self._idle += 1
                waiting = [one for calls in self._waiting.values() for one in calls.values()]
                stranded = [future for pieces in waiting for future, _ in pieces]
                self._waiting.clear()
            for future in stranded:
                if future.set_running_or_notify_cancel():
                    future.set_exception(error)
            raise

    def forget(self, call: Hashable) -> None:
        """The call has ended: what waits of it is cancelled, and so is all that it still submits.

        vLLM gives up on a request at the first of its texts that is wrong, and leaves the others.
        """
        with self._lock:
            self._forgotten.add(call)
            left = [calls.pop(call) for calls in self._waiting.values() if call in calls]
            self._waiting = {tenant: calls for tenant, calls in self._waiting.items() if calls}
        for pieces in left:
            for future, _ in pieces:
                future.cancel()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """See `Executor`."""
        self._inner.shutdown(wait=wait, cancel_futures=cancel_futures)

    def _work(self) -> None:
        while (piece := self._next()) is not None:
            future, run = piece
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(run())
            except BaseException as error:
                future.set_exception(error)

    def _next(self) -> _Piece | None:
        """The first piece of the call whose turn it is; that call and its tenant then stand
        last."""
        with self._lock:
            if not self._waiting:
                self._idle += 1
                return None
            tenant, calls = _first(self._waiting)
            call, pieces = _first(calls)
            piece = pieces.popleft()
            if pieces:
                calls[call] = pieces
            if calls:
                self._waiting[tenant] = calls
            return piece


def _first(waiting: dict[Hashable, T]) -> tuple[Hashable, T]:
    """Takes out who has waited longest."""
    first = next(iter(waiting))
    return first, waiting.pop(first)


class Line:
    """Places of requests before the engine, the lowest first: tenants take turns, and each one's
    requests keep their order. A tenant with none under way begins where the engine is by now,
    before what others have brought in heaps (start-time fair queueing: Goyal, Vin, Cheng 1996).
    One loop.
    """

    def __init__(self) -> None:
        self._now = 0
        self._last: dict[Hashable, int] = {}
        self._under_way = Counter[Hashable]()

    @contextmanager
    def place(self, tenant: Hashable) -> Iterator[int]:
        """The place of a request that is under way for as long as the block lasts."""
        place = max(self._now, self._last.get(tenant, -1) + 1)
        self._last[tenant] = place
        self._under_way[tenant] += 1
        try:
            yield place
        finally:
            self._under_way[tenant] -= 1
            if not self._under_way[tenant]:
                del self._under_way[tenant], self._last[tenant]

    def reached(self, place: int) -> None:
        """The engine works on the request of this place."""
        self._now = max(self._now, place)


class Room:
    """Room for so many tokens; what finds none waits for what came before it. One loop.

    A text that is larger than all of it gets in alone.
    """

    def __init__(self, tokens: int) -> None:
        self._most = tokens
        self._inside = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def taken(self, tokens: int) -> AsyncIterator[None]:
        """Waits for room for so many tokens, and gives it back."""
        if self._waiting or not self._fits(tokens):
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append((tokens, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._leave(tokens)
                raise
        else:
            self._inside += tokens
        try:
            yield
        finally:
            self._leave(tokens)

    def _fits(self, tokens: int) -> bool:
        return self._inside == 0 or self._inside + tokens <= self._most

    def _leave(self, tokens: int) -> None:
        self._inside -= tokens
        while self._waiting and self._fits(self._waiting[0][0]):
            wanted, turn = self._waiting.popleft()
            if not turn.done():
                self._inside += wanted
                turn.set_result(None)
