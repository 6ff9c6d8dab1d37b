"""A store whose writes are measured."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from penstock.control.errors import StoreUnavailable
from penstock.control.store.store import Author, Change, Contents, DocumentStore
from penstock.control.supervision.clock import Clock


class WriteObserver(Protocol):
    """Is told how long writing takes."""

    def written(self, seconds: float, *, failed: bool) -> None:
        """A transaction ended."""


class TimedStore:
    """Another store, with somebody who is told of its transactions."""

    def __init__(self, store: DocumentStore, clock: Clock, observer: WriteObserver) -> None:
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
        began, failed = self._clock.monotonic(), True
        try:
            version = await self._store.apply(changes, author, at)
            failed, self._failing = False, ""
        except StoreUnavailable as error:
            self._failing = str(error)
            raise
        finally:
            self._observer.written(self._clock.monotonic() - began, failed=failed)
        return version
