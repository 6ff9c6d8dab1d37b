"""The contents of adapters at the head: taken in while they are registered, thrown away once
nobody needs them.

Bytes come before the document that names them. So while anything is being taken in nothing is
collected: what has just come may have no name yet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from penstock.adapters.fitness import FamilyLimits
from penstock.adapters.registry import collectable
from penstock.adapters.version import AdapterVersion, Digest
from penstock.control.errors import StoreUnavailable
from penstock.control.state.cluster import ClusterView
from penstock.control.store.adapter_content import AdapterContents, TakenIn

log = logging.getLogger(__name__)


class AdapterSources(Protocol):
    """Where adapters come from."""

    def fetched(self, source: str, max_bytes: int) -> AbstractContextManager[Path]:
        """A directory with the adapter's files, for as long as the block lasts. Blocks. Raises
        `BadAdapter`, and `Unavailable` where trying again may help."""
        ...


class AdapterLibrary:
    """Takes contents in and collects them. One event loop; what blocks runs in threads."""

    def __init__(
        self, contents: AdapterContents, sources: AdapterSources, view: Callable[[], ClusterView]
    ) -> None:
        self._contents = contents
        self._sources = sources
        self._view = view
        self._gate = asyncio.Lock()  # while held nothing begins to be taken in
        self._under_way = 0

    @asynccontextmanager
    async def fetched(self, source: str, limits: FamilyLimits) -> AsyncIterator[TakenIn]:
        """The content of a source, stored; until the block ends it is not collected."""

        def take() -> TakenIn:
            with self._sources.fetched(source, limits.max_bytes) as directory:
                return self._contents.take_in(directory, limits)

        async with self._held():
            yield await asyncio.to_thread(take)

    @asynccontextmanager
    async def taken(self, directory: Path, limits: FamilyLimits) -> AsyncIterator[TakenIn]:
        """The same, of a directory on this machine."""
        async with self._held():
            yield await asyncio.to_thread(self._contents.take_in, directory, limits)

    async def collect(self) -> frozenset[Digest]:
        """Throws away what nobody needs; nothing while anything is being taken in, whose end
        collects. Returns what went."""
        async with self._gate:
            if self._under_way:
                return frozenset()
            stored = await asyncio.to_thread(self._contents.stored)
            gone = collectable(stored, _versions(self._view()), held_by_replicas(self._view()))
            for digest in gone:
                try:
                    await asyncio.to_thread(self._contents.remove, digest)
                except StoreUnavailable as error:
                    log.warning("adapter content not removed: %s", error)
            return frozenset(gone)

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


def _versions(view: ClusterView) -> list[AdapterVersion]:
    return list(view.adapters.versions.values())


__all__ = ["AdapterLibrary", "AdapterSources", "held_by_replicas"]
