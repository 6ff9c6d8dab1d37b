"""Waiting for the view to change, in asyncio's terms."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from penstock.control.managers.cluster import Cluster, Projection


class ChangeSignal:
    """Remembers that the view changed since it was last waited for: no change is ever missed."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._changed.set()  # the first wait returns at once: the view as it is, is news

    async def wait(self, at_most: timedelta | None = None) -> None:
        """Returns when something changed, or when the time is over."""
        try:
            async with asyncio.timeout(at_most.total_seconds() if at_most else None):
                await self._changed.wait()
        except TimeoutError:
            pass
        self._changed.clear()

    def set(self) -> None:
        """Something changed."""
        self._changed.set()


@contextmanager
def watching(cluster: Cluster, of: Projection | None = None) -> Iterator[ChangeSignal]:
    """A signal that the cluster's changes set, until the block ends; with `of`, only those of what
    it gives of a view."""
    signal = ChangeSignal()
    stop = cluster.listen(signal.set, of)
    try:
        yield signal
    finally:
        stop()
