"""Changes the cluster view, and writes to the store what has to outlive this process.

One change at a time. What an operator desires is stored before anybody sees it; what was observed
is true whether or not it can be stored, so a full disk stops no route update.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import replace

from penstock.control.errors import StoreUnavailable
from penstock.control.managers.clock import Clock
from penstock.control.state.cluster import Cluster, ClusterView
from penstock.control.state.stamp import Stamp
from penstock.control.store.documents import changes_between, digest_of, view_of
from penstock.control.store.migration import migrations
from penstock.control.store.store import Author, Change, Document, Key, Store

log = logging.getLogger(__name__)

IDENTITY = Key("cluster", "identity")
HEAD = "head"

Step = Callable[[ClusterView], ClusterView]


class Keeper:
    """The only writer of the Cluster once it is running."""

    def __init__(self, cluster: Cluster, store: Store, clock: Clock) -> None:
        self._cluster = cluster
        self._store = store
        self._clock = clock
        self._lock = asyncio.Lock()
        self._stamp = Stamp()

    @property
    def cluster(self) -> Cluster:
        """What is kept: to read, and to listen to."""
        return self._cluster

    @property
    def stamp(self) -> Stamp:
        """Whose messages ours are: the store's identity, at its newest transaction."""
        return self._stamp

    async def restore(self) -> None:
        """Takes up the view that the last head left behind, brought to today's format."""
        contents = await self._store.load()
        if changes := migrations(contents.documents, digest_of):
            await self._write(changes, Author(HEAD, "bring the store to this version's format"))
        if IDENTITY not in contents.documents:
            identity: Document = {"cluster_id": secrets.token_hex(16), "epoch": 1}
            await self._write([Change(IDENTITY, identity)], Author(HEAD, "make the cluster's id"))
        contents = await self._store.load()
        found = contents.documents[IDENTITY].document
        self._stamp = Stamp(str(found["cluster_id"]), int(found["epoch"]), contents.version)
        self._cluster.replace(view_of(contents, self._clock.now()))

    async def desire(self, step: Step, author: Author) -> ClusterView:
        """Applies what an operator or a manager decided; raises StoreUnavailable, then nothing
        is changed. Errors that the step raises pass through."""
        async with self._lock:
            old = self._cluster.view()
            new = step(old)
            await self._write(changes_between(old, new), author)
            return self._cluster.replace(new)

    async def observe(self, step: Step, what: str) -> ClusterView:
        """Applies what was seen, stored if that is possible."""
        async with self._lock:
            old = self._cluster.view()
            new = step(old)
            try:
                await self._write(changes_between(old, new), Author(HEAD, what))
            except StoreUnavailable as error:
                log.error("observation not stored", extra={"what": what, "error": str(error)})
            return self._cluster.replace(new)

    async def counter(self, name: str) -> int:
        """The stored value of a counter; 0 where it was never raised."""
        stored = (await self._store.load()).documents.get(Key("counter", name))
        return int(stored.document["value"]) if stored else 0

    async def raise_counter(self, name: str, value: int) -> None:
        """Stores a counter's value."""
        document: Document = {"value": value}
        await self._write([Change(Key("counter", name), document)], Author(HEAD, f"raise {name}"))

    async def _write(self, changes: list[Change], author: Author) -> None:
        if changes:
            version = await self._store.apply(changes, author, self._clock.now())
            self._stamp = replace(self._stamp, revision=version)
