"""What a thread reads, handed to the loop: bounded, in batches, and given up from either side."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final

_MOST: Final = 64
"""Items that wait for the loop before the thread does."""


class Feed:
    """Items of one thread for one task. Made on the loop; `put`, `opened` and `end` are the
    thread's, the rest is the loop's."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._lock = threading.Condition()
        self._items: list[Any] = []
        self._over = False
        self._error: Exception | None = None
        self._closed = False
        self._hang_up: Callable[[], None] | None = None

    @property
    def closed(self) -> bool:
        """Whether nobody wants anything more."""
        return self._closed

    def opened(self, hang_up: Callable[[], None]) -> None:
        """From now on `hang_up` ends what the thread waits for. Callable from any thread."""
        with self._lock:
            self._hang_up = hang_up
            closed = self._closed
        if closed:
            hang_up()

    def put(self, item: Any) -> bool:
        """Hands an item over, and waits while there are too many. False: nobody wants it."""
        with self._lock:
            self._lock.wait_for(lambda: len(self._items) < _MOST or self._closed)
            if self._closed:
                return False
            self._items.append(item)
            self._tell_of_first()
        return True

    def end(self, error: Exception | None = None) -> None:
        """There is nothing more; `error`: since it broke."""
        with self._lock:
            self._over, self._error = True, error
            if not self._closed:
                self._wake()

    async def batches(self) -> AsyncGenerator[list[Any], None]:
        """The items as they come. Raises what the thread ended with; closing it hangs up."""
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                with self._lock:
                    items, self._items = self._items, []
                    over, error = self._over, self._error
                    self._lock.notify()
                if items:
                    yield items
                if over and error is not None:
                    raise error
                if over:
                    return
        finally:
            self._close()

    def _close(self) -> None:
        with self._lock:
            self._closed = True
            self._items.clear()
            hang_up, over = self._hang_up, self._over
            self._lock.notify()
        if hang_up is not None and not over:
            hang_up()

    def _tell_of_first(self) -> None:
        if len(self._items) == 1:
            self._wake()

    def _wake(self) -> None:
        self._loop.call_soon_threadsafe(self._news.set)
