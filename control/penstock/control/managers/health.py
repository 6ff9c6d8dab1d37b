"""Hears agents, pings replicas, and lets time pass: the witnesses that `state/health.py` folds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from penstock.control.managers.clock import Clock
from penstock.control.managers.errands import Errands
from penstock.control.managers.keeper import Keeper
from penstock.control.state.health import Patience, Ping, heard, pinged, registered, swept
from penstock.control.state.replica import (
    NodeFacts,
    NodeId,
    Replica,
    ReplicaState,
    ReplicaStatus,
    Resources,
)

_PINGED = (ReplicaState.READY, ReplicaState.DRAINING)


class ReplicaPinger(Protocol):
    """Asks replicas how they are."""

    async def ping(self, address: str) -> Ping:
        """One Health call to the Inference service at this address."""


class HealthManager:
    """One verdict for each replica and node, from heartbeats heard and pings sent."""

    def __init__(
        self,
        keeper: Keeper,
        pinger: ReplicaPinger,
        clock: Clock,
        patience: Patience,
        *,
        ping_every: timedelta,
    ) -> None:
        self._keeper = keeper
        self._pinger = pinger
        self._clock = clock
        self._patience = patience
        self._ping_every = ping_every

    async def node_registered(self, facts: NodeFacts, reports: Sequence[ReplicaStatus]) -> None:
        """An agent announced itself."""
        now = self._clock.now()
        await self._keeper.observe(
            lambda view: registered(view, facts, reports, now), f"node {facts.id} registered"
        )

    async def node_heard(
        self, node_id: NodeId, resources: Resources, reports: Sequence[ReplicaStatus]
    ) -> None:
        """A heartbeat; raises UnknownNode where the agent has to register first."""
        now = self._clock.now()
        await self._keeper.observe(
            lambda view: heard(view, node_id, resources, reports, now),
            f"heartbeat of node {node_id}",
        )

    async def check_remembered(self) -> None:
        """Pings every replica that the view has, once: a restarted head's first look around."""
        async with asyncio.TaskGroup() as tasks:
            for replica in self._to_ping():
                tasks.create_task(self._ping(replica))

    async def run(self) -> None:
        """Pings and sweeps until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            errands = Errands(tasks)
            while True:
                await self._keeper.observe(
                    lambda view: swept(view, self._clock.now(), self._patience), "time passed"
                )
                for replica in self._to_ping():
                    errands.send(replica.id, self._ping(replica))
                await self._clock.sleep(self._ping_every)

    def _to_ping(self) -> list[Replica]:
        replicas = self._keeper.cluster.view().replicas.values()
        return [r for r in replicas if r.state in _PINGED and r.status.address]

    async def _ping(self, replica: Replica) -> None:
        address = replica.status.address
        result = await self._pinger.ping(address)
        now = self._clock.now()
        await self._keeper.observe(
            lambda view: pinged(view, replica.id, address, result, now), f"ping of {replica.id}"
        )
