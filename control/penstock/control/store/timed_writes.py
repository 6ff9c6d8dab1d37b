"""How writing to a store goes: how long it takes, and how it ended last."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, TypeVar

from penstock.control.errors import StoreUnavailable
from penstock.control.supervision.clock import Clock

T = TypeVar("T")


class WriteObserver(Protocol):
    """Is told how long writing takes."""

    def written(self, seconds: float, *, failed: bool) -> None:
        """A transaction ended."""


class TimedWrites:
    """Somebody who is told of a store's transactions, and how the last of them ended."""

    def __init__(self, clock: Clock, observer: WriteObserver) -> None:
        self._clock = clock
        self._observer = observer
        self._failing = ""

    @property
    def failing(self) -> str:
        """Why the last transaction failed; empty where it did not."""
        return self._failing

    async def timed(self, writing: Awaitable[T]) -> T:
        """A transaction, told of when it has ended."""
        began, failed = self._clock.monotonic(), True
        try:
            result = await writing
            failed, self._failing = False, ""
        except StoreUnavailable as error:
            self._failing = str(error)
            raise
        finally:
            self._observer.written(self._clock.monotonic() - began, failed=failed)
        return result
