"""A store whose writes are measured."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from datetime import date, datetime
from typing import Protocol, TypeVar

from penstock.control.errors import StoreUnavailable
from penstock.control.state.events import Event, EventPage, Wanted
from penstock.control.state.tenancy.spend import SpendRow
from penstock.control.state.tenancy.usage import Counts, Holder, Reading, UsageRow
from penstock.control.store.store import Author, Change, Contents, Store
from penstock.control.supervision.clock import Clock

T = TypeVar("T")


class WriteObserver(Protocol):
    """Is told how long writing takes."""

    def written(self, seconds: float, *, failed: bool) -> None:
        """A transaction ended."""


class TimedStore:
    """Another store, with somebody who is told of its transactions."""

    def __init__(self, store: Store, clock: Clock, observer: WriteObserver) -> None:
        self._store = store
        self._clock = clock
        self._observer = observer
        self._failing = ""

    @property
    def failing(self) -> str:
        """Why the last transaction failed; empty where it did not."""
        return self._failing

    async def load(self) -> Contents:
        """As the store does."""
        return await self._store.load()

    async def apply(self, changes: Sequence[Change], author: Author, at: datetime) -> int:
        """As the store does."""
        return await self._timed(self._store.apply(changes, author, at))

    async def record(self, readings: Sequence[Reading]) -> None:
        """As the store does."""
        await self._timed(self._store.record(readings))

    async def usage(self, first: date, last: date, tenant: str | None = None) -> list[UsageRow]:
        """As the store does."""
        return await self._store.usage(first, last, tenant)

    async def spent(self, first: date, last: date, deployment: str | None = None) -> list[SpendRow]:
        """As the store does."""
        return await self._store.spent(first, last, deployment)

    async def sums_of(self, day: date) -> Mapping[Holder, Counts]:
        """As the store does."""
        return await self._store.sums_of(day)

    async def keep_events(self, events: Sequence[Event]) -> None:
        """As the store does."""
        await self._timed(self._store.keep_events(events))

    async def events(
        self, wanted: Wanted, *, after: int = 0, most: int | None = None, last: bool = False
    ) -> EventPage:
        """As the store does."""
        return await self._store.events(wanted, after=after, most=most, last=last)

    async def _timed(self, writing: Awaitable[T]) -> T:
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
