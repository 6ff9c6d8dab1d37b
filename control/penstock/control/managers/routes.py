"""Makes route snapshots from the view, numbers them, and hands them to every watcher.

A version is never used twice, also across restarts: blocks of versions are reserved in the store
before they are used. A gateway that has seen a higher version than ours (the store was replaced)
moves ours above it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

from penstock.control.errors import StoreUnavailable
from penstock.control.managers.changes import ChangeSignal, watching
from penstock.control.managers.clock import Clock
from penstock.control.managers.keeper import Keeper
from penstock.control.state.snapshot import Routes, RouteSnapshot, routes_of

log = logging.getLogger(__name__)

COUNTER = "snapshot_version"
RESERVED_AT_ONCE = 10_000


class RouteManager:
    """The current snapshot. Nothing is handed out before `open`: see there."""

    def __init__(self, keeper: Keeper, clock: Clock) -> None:
        self._keeper = keeper
        self._clock = clock
        self._opened = asyncio.Event()
        self._snapshot = RouteSnapshot(0, clock.now(), Routes())
        self._reserved = 0
        self._watchers: set[ChangeSignal] = set()

    async def open(self) -> None:
        """Makes the first snapshot; watchers that came early get it now.

        Called when what the store remembers was checked against the replicas: until then gateways
        go on with the routes that they have.
        """
        last = await self._keeper.counter(COUNTER)
        await self._keeper.raise_counter(COUNTER, last + RESERVED_AT_ONCE)
        self._reserved = last + RESERVED_AT_ONCE
        self._publish(last + 1)
        self._opened.set()

    async def run(self) -> None:
        """Follows the view until cancelled."""
        await self._opened.wait()
        with watching(self._keeper.cluster) as changed:
            while True:
                await changed.wait()
                if routes_of(self._keeper.cluster.view()) != self._snapshot.routes:
                    await self._move_to(self._snapshot.version + 1)

    def current(self) -> RouteSnapshot:
        """What gateways are told now; version 0 before `open`."""
        return self._snapshot

    async def watch(self, have_version: int) -> AsyncIterator[RouteSnapshot]:
        """The current snapshot, then each newer one; what came in between is left out."""
        await self._opened.wait()
        if have_version > self._snapshot.version:
            await self._move_to(have_version + 1)
        signal = ChangeSignal()
        self._watchers.add(signal)
        sent = 0
        try:
            while True:
                await signal.wait()
                if self._snapshot.version > sent:
                    sent = self._snapshot.version
                    yield self._snapshot
        finally:
            self._watchers.discard(signal)

    async def _move_to(self, version: int) -> None:
        if version > self._reserved:
            self._reserved = version + RESERVED_AT_ONCE
            try:
                await self._keeper.raise_counter(COUNTER, self._reserved)
            except StoreUnavailable as error:  # routes matter more than their numbers
                log.error("snapshot versions not reserved", extra={"error": str(error)})
        self._publish(max(version, self._snapshot.version + 1))

    def _publish(self, version: int) -> None:
        routes = routes_of(self._keeper.cluster.view())
        self._snapshot = RouteSnapshot(version, self._clock.now(), routes, self._keeper.stamp)
        log.info(
            "routes changed",
            extra={"version": version, "replicas": [r.id for r in routes.replicas]},
        )
        for signal in self._watchers:
            signal.set()
