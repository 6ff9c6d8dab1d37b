"""Tells nodes what adapters their replicas are to keep, and throws away contents nobody needs."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

from penstock.control.errors import HoldsStill, NodeUnreachable, NotFound, ReplicaRefused
from penstock.control.managers.adapters.library import GRACE, AdapterLibrary, held_by_replicas
from penstock.control.managers.changes import ChangeSignal, watching
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.placement.placement import Placement
from penstock.control.state.adapters.residence import KeepOrder, orders_of
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import ReplicaId
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

# What was not heard is said again no sooner.
LOOK_AGAIN = timedelta(seconds=2)
_ROUND = GRACE.total_seconds()
AT_ONCE = 16  # nodes that are told beside each other


class AdapterResidence:
    """The loop that keeps adapters where they are wanted. What it told is only remembered here: a
    head that starts tells it again, which changes nothing."""

    def __init__(
        self, cluster: ClusterStore, placement: Placement, library: AdapterLibrary, clock: Clock
    ) -> None:
        self._cluster = cluster
        self._placement = placement
        self._library = library
        self._clock = clock
        self._told: dict[ReplicaId, KeepOrder] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._collected: object = None  # what was needed when contents were collected last
        self._opened = asyncio.Event()
        self._again = ChangeSignal()
        self._telling: set[ReplicaId] = set()  # those that are being told

    def open(self) -> None:
        """The registry is whole: what is not in it may be let go."""
        self._library.open()
        self._opened.set()

    async def run(self) -> None:
        """Tells and collects until cancelled; nothing before `open`."""
        await self._opened.wait()
        async with asyncio.TaskGroup() as tasks:
            with watching(self._cluster, _what_orders_follow_from) as self._again:
                while True:
                    await self._again.wait(GRACE)
                    self._tell(tasks)
                    await self._collect()

    def _tell(self, tasks: asyncio.TaskGroup) -> None:
        view = self._cluster.view()
        if view.held:
            return
        self._told = {r: order for r, order in self._told.items() if r in view.replicas}
        for replica_id, order in orders_of(view, self._told).items():
            if self._told.get(replica_id) == order:
                continue
            if replica_id not in self._telling:
                self._telling.add(replica_id)
                tasks.create_task(self._keep(replica_id, order))

    async def _keep(self, replica_id: ReplicaId, order: KeepOrder) -> None:
        """Tells one replica's; then looks again, since it may be another by now."""
        try:
            if await self._is_kept(replica_id, order):
                self._told[replica_id] = order
        finally:
            self._telling.discard(replica_id)
            self._again.set()

    async def _is_kept(self, replica_id: ReplicaId, order: KeepOrder) -> bool:
        """Tells it; false, after a while, where it was not heard."""
        view = self._cluster.view()
        replica = view.replicas.get(replica_id)
        node = replica and view.nodes.get(replica.node)
        if not replica or not node:
            return True
        try:
            async with self._turns:
                await self._placement.keep_adapters(
                    node.facts, replica_id, order.kept, order.dropped
                )
        except ReplicaRefused as error:  # an older agent: it would refuse again
            log.warning("adapters not kept: %s", error, extra={"replica": replica_id})
        except (NodeUnreachable, NotFound, HoldsStill) as error:
            log.info("adapters not kept yet: %s", error, extra={"replica": replica_id})
            await self._clock.sleep(LOOK_AGAIN)
            return False
        return True

    async def _collect(self) -> None:
        view = self._cluster.view()
        needed = (view.adapters.versions, held_by_replicas(view), self._clock.monotonic() // _ROUND)
        if needed != self._collected and not view.held:
            self._collected = needed
            for digest in await self._library.collect():
                log.info("adapter content removed", extra={"digest": digest})


def _what_orders_follow_from(view: ClusterView) -> tuple[object, ...]:
    return (
        view.deployments,
        view.nodes,
        view.replicas,
        view.adapters,
        view.canaries.shared,
        view.held,
    )
