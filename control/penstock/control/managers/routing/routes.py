"""Makes route snapshots from the view, numbers them, and hands them to every watcher.

A version is never used twice, also across restarts: blocks of versions are reserved in the store
before they are used. A gateway that has seen a higher version than ours (the store was replaced)
moves ours above it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta

from penstock.control.errors import Unavailable
from penstock.control.managers.changes import ChangeSignal, watching
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.shipped_programs import shipped_programs
from penstock.control.state.cluster import ClusterView
from penstock.control.state.routing.snapshot import (
    MadeRoutes,
    Routes,
    RouteSnapshot,
    what_routes_follow_from,
    with_published,
)
from penstock.control.state.routing.withholding import withheld
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

COUNTER = "snapshot_version"
RESERVED_AT_ONCE = 10_000
# No gateway is moved beyond this one: the field has 64 bits, and what claims more is broken.
LAST_VERSION = 1 << 62


class RouteManager:
    """The current snapshot. Nothing is handed out before `open`: see there."""

    def __init__(self, cluster: ClusterStore, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._opened = asyncio.Event()
        self._snapshot = RouteSnapshot(0, clock.now(), Routes())
        self._floor: int | None = None  # the last version of earlier heads; None: not asked yet
        self._succeeded_at: datetime | None = None  # None: no head told routes before this one
        self._reserved = 0
        self._withheld = ""
        self._made = MadeRoutes(shipped_programs())
        self._moving = asyncio.Lock()  # reserving versions takes a while, and none may go back
        self._watchers: set[ChangeSignal] = set()

    async def open(self) -> None:
        """Makes the first snapshot; watchers that came early get it now.

        Called when what the store remembers was checked against the replicas: until then gateways
        go on with the routes that they have.
        """
        if not self._cluster.view().held:
            self._floor = await self._cluster.counter(COUNTER)
            self._succeeded_at = self._clock.now() if self._floor else None
            await self._move_to(self._floor + 1)
        self._opened.set()

    async def run(self) -> None:
        """Follows the view until cancelled."""
        await self._opened.wait()
        with watching(self._cluster, what_routes_follow_from) as changed:
            while True:
                await changed.wait()
                if self._floor is None:
                    await self.open()  # it held still so far
                elif self._is_news(self._routes_to_tell()):
                    await self._move_to(self._snapshot.version + 1)
                await self._note_published()

    def _is_news(self, routes: Routes | None) -> bool:
        """Other routes, or the same after a take-over: gateways are to learn of the new epoch."""
        if routes is None:
            return False
        same_epoch = self._snapshot.stamp.epoch == self._cluster.stamp.epoch
        return routes != self._snapshot.routes or not same_epoch

    @property
    def withheld(self) -> str:
        """Why the routes that follow from the view are not told; empty: they are."""
        return self._withheld

    def current(self) -> RouteSnapshot:
        """What gateways are told now; version 0 before `open`."""
        return self._snapshot

    async def watch(self, have_version: int) -> AsyncIterator[RouteSnapshot]:
        """The current snapshot, then each newer one; what came in between is left out."""
        await self._opened.wait()
        if self._snapshot.version < have_version <= LAST_VERSION:
            await self._move_to(have_version + 1)
        signal = ChangeSignal()
        self._watchers.add(signal)
        sent = 0
        try:
            while True:
                await signal.wait()
                if self._snapshot.version > sent and not self._cluster.view().held:
                    sent = self._snapshot.version
                    yield self._snapshot
        finally:
            self._watchers.discard(signal)

    async def routed_everywhere(
        self, is_routed: Callable[[Routes], bool], at_most: timedelta
    ) -> bool:
        """Waits until every gateway that reports routes by a snapshot of which `is_routed` holds;
        false where that takes longer. A gateway reports as soon as it has another one."""
        version = 0
        with watching(self._cluster, _what_gateways_have) as changed:
            try:
                async with asyncio.timeout(at_most.total_seconds()):
                    while True:
                        if not version and is_routed(self._snapshot.routes):
                            version = self._snapshot.version
                        if _all_have(self._cluster.view(), version):
                            return True
                        await changed.wait()
            except TimeoutError:
                return False

    async def _move_to(self, version: int) -> None:
        async with self._moving:
            await self._publish_from(version)

    async def _publish_from(self, version: int) -> None:
        """Tells the view's routes under this version or a higher one."""
        if self._routes_to_tell() is None:
            return
        version = max(version, self._snapshot.version + 1, (self._floor or 0) + 1)
        await self._reserve(version)
        routes = self._routes_to_tell()  # of the view by now
        if routes is None or self._cluster.view().held:
            return
        self._publish(version, routes)
        await self._note_published()

    def _routes_to_tell(self) -> Routes | None:
        """What follows from the view. Where that is withheld, keeps why, and gives what was told
        last with today's keys and canaries, so that what was revoked or rolled back is so all the
        same; None before that."""
        view = self._cluster.view()
        routes = self._made.of(view)
        why = withheld(view, self._snapshot.routes, routes)
        if why != self._withheld and why:
            log.error("routes not told", extra={"reason": why})
        self._withheld = why
        if not why:
            return routes
        told = self._snapshot
        return told.routes.with_rules_of(routes) if told.version and not view.held else None

    async def _reserve(self, version: int) -> None:
        """Sees to it that no head after this one begins below the version."""
        if version <= self._reserved:
            return
        block = version - 1 + RESERVED_AT_ONCE
        try:
            await self._cluster.raise_counter(COUNTER, block)
            self._reserved = block
        except Unavailable as error:  # routes matter more than their numbers
            log.error("snapshot versions not reserved", extra={"error": str(error)})

    def _publish(self, version: int, routes: Routes) -> None:
        now = self._clock.now()
        ahead = timedelta(seconds=round((now - self._clock.steady()).total_seconds()))
        self._snapshot = RouteSnapshot(version, now, routes, self._cluster.stamp, ahead)
        log.info(
            "routes changed",
            extra={"version": version, "replicas": [r.id for r in routes.replicas]},
        )
        for signal in self._watchers:
            signal.set()

    async def _note_published(self) -> None:
        """Lets the plan know what gateways are told: it stops nothing that they still send to."""
        snapshot, since = self._snapshot, self._succeeded_at
        if snapshot.version:
            await self._cluster.observe(
                lambda view: with_published(view, snapshot, since), "routes published"
            )


def _all_have(view: ClusterView, version: int) -> bool:
    """Whether all that report have it; 0: nobody can yet."""
    have = [g.report.snapshot_version for g in view.gateways.values() if g.reporting and g.report]
    return not have or (version > 0 and min(have) >= version)


def _what_gateways_have(view: ClusterView) -> tuple[object, ...]:
    return (view.published, view.gateways)
