"""The contents of adapters at the head: taken in while they are registered, thrown away once
nobody needs them.

Bytes come before the document that names them. So while anything is being taken in nothing is
collected: what has just come may have no name yet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from penstock.adapters.fitness import FamilyLimits
from penstock.adapters.registry import collectable
from penstock.adapters.version import Digest
from penstock.control.errors import StoreUnavailable
from penstock.control.state.cluster import ClusterView
from penstock.control.store.adapters.content import AdapterContents, TakenIn
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

GRACE = timedelta(minutes=2)
"""That contents of a removed version stay: longer than a request waits and a replica drains."""


class AdapterSources(Protocol):
    """Where adapters come from."""

    def fetched(self, source: str, max_bytes: int) -> AbstractContextManager[Path]:
        """A directory with the adapter's files, for as long as the block lasts. Blocks. Raises
        `BadAdapter`, and `Unavailable` where trying again may help."""


class AdapterLibrary:
    """Takes contents in and collects them. One event loop; what blocks runs in threads."""

    def __init__(
        self,
        contents: AdapterContents,
        sources: AdapterSources,
        view: Callable[[], ClusterView],
        clock: Clock,
    ) -> None:
        self._contents = contents
        self._sources = sources
        self._view = view
        self._clock = clock
        self._gate = asyncio.Lock()  # while held nothing begins to be taken in
        self._under_way = 0
        self._opened = False
        self._let_go: dict[Digest, float] = {}  # until when contents of removed versions stay
        # Sources may be slow, and are not to keep others from the disk.
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="adapters")

    def open(self) -> None:
        """The registry is what it is to be: what it does not name may be thrown away."""
        self._opened = True

    def let_go(self, digest: Digest) -> None:
        """A version with this content was removed. Requests that were admitted before may still
        have it loaded, so it stays a while."""
        self._let_go[digest] = self._clock.monotonic() + GRACE.total_seconds()

    @asynccontextmanager
    async def fetched(self, source: str, limits: FamilyLimits) -> AsyncIterator[TakenIn]:
        """The content of a source, stored; until the block ends it is not collected."""

        def take() -> TakenIn:
            with self._sources.fetched(source, limits.max_bytes) as directory:
                return self._contents.take_in(directory, limits)

        async with self._held():
            yield await self._in_thread(take)

    @asynccontextmanager
    async def taken(self, directory: Path, limits: FamilyLimits) -> AsyncIterator[TakenIn]:
        """The same, of a directory on this machine."""
        async with self._held():
            yield await self._in_thread(lambda: self._contents.take_in(directory, limits))

    async def collect(self) -> frozenset[Digest]:
        """Throws away what nobody needs; nothing while anything is being taken in, whose end
        collects, and nothing while this head may know less than there is. Returns what went."""
        async with self._gate:
            view = self._view()
            if self._under_way or not self._opened or view.held or not view.adapters.is_whole:
                return frozenset()
            try:
                return await self._collected(view)
            except StoreUnavailable as error:
                log.warning("adapter contents not collected: %s", error)
                return frozenset()

    async def _collected(self, view: ClusterView) -> frozenset[Digest]:
        stored = await asyncio.to_thread(self._contents.stored)
        now = self._clock.monotonic()
        self._let_go = {digest: until for digest, until in self._let_go.items() if until > now}
        held = held_by_replicas(view) | self._let_go.keys()
        gone = collectable(stored, view.adapters.versions.values(), held)
        for digest in gone:
            await asyncio.to_thread(self._contents.remove, digest)
        return frozenset(gone)

    async def _in_thread(self, work: Callable[[], TakenIn]) -> TakenIn:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    @asynccontextmanager
    async def _held(self) -> AsyncIterator[None]:
        async with self._gate:
            self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            await self.collect()


def held_by_replicas(view: ClusterView) -> set[Digest]:
    """What replicas hold, by their own word: a call may still run under it."""
    return {Digest(d) for r in view.replicas.values() for d in r.status.adapter_digests if d}
