"""Hears agents, calls replicas, and lets time pass: the witnesses that `state/` folds.

Each ready replica is pinged about once a second while there are few; where there are many, or its
agent vouches for it, less often, so that all pings together stay below `PINGS_PER_SECOND`. A deep
check now and then makes each engine do a little work: one of which nothing comes out is wedged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Protocol

from penstock.control.managers.changes import watching
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.fleet.gateway_reports import with_suspects
from penstock.control.managers.single_flight import SingleFlight
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.admission import second_agent
from penstock.control.state.fleet.health import Patience, observed, registered, swept, vouched_for
from penstock.control.state.fleet.liveness import ObservedNode, PingCount
from penstock.control.state.fleet.pings import Ping, deeply_checked, pinged
from penstock.control.state.fleet.replica import (
    Evidence,
    NodeFacts,
    NodeId,
    NodeIntent,
    NodeState,
    ProgramStatus,
    Replica,
    ReplicaAddress,
    ReplicaId,
    ReplicaState,
    ReplicaStatus,
    Resources,
    WarmPool,
)
from penstock.control.state.routing.doubts import doubts_in
from penstock.control.state.routing.suspects import remaining
from penstock.control.state.stamp import Stamp
from penstock.control.supervision.clock import Clock

_PINGED = (ReplicaState.READY, ReplicaState.DRAINING)
PINGS_PER_SECOND = 100
# A doubt that stays is checked again no sooner: each check takes a little of the engine.
DEEP_IF_DOUBTED = timedelta(seconds=10)
NEVER = datetime.min.replace(tzinfo=UTC)


class ReplicaPinger(Protocol):
    """Asks replicas how they are."""

    async def ping(self, replica: ReplicaAddress) -> Ping:
        """One Health call to the Inference service there."""

    async def deep_check(self, replica: ReplicaAddress) -> bool:
        """Whether the engine did a little work; true where it cannot be asked now."""


class HealthManager:
    """One verdict for each replica and node, from heartbeats heard and calls made."""

    def __init__(
        self,
        cluster: ClusterStore,
        pinger: ReplicaPinger,
        clock: Clock,
        patience: Patience,
        *,
        ping_every: timedelta,
        deep_every: timedelta = timedelta(0),  # 0: never
    ) -> None:
        self._cluster = cluster
        self._pinger = pinger
        self._clock = clock
        self._patience = patience
        self._ping_every = ping_every
        self._deep_every = deep_every
        self._pinged_at: dict[ReplicaId, datetime] = {}
        self._deep_at: dict[ReplicaId, datetime] = {}
        # In a row, and the address of the process that they were of.
        self._deep_failures: dict[ReplicaId, tuple[str, int]] = {}

    async def node_registered(
        self, facts: NodeFacts, reports: Sequence[ReplicaStatus], stamp: Stamp | None = None
    ) -> None:
        """An agent announced itself, with the newest stamp that it accepted. Raises NotAdmitted
        where another one speaks for the node, or it belongs to another cluster."""
        if why := second_agent(self._cluster.view(), facts):
            self._cluster.refuse(f"node {facts.id} at {facts.agent_address}", why)
        await self._cluster.observe_stamp(f"node {facts.id}", stamp or Stamp(), facts.agent_address)
        now, live = self._clock.steady(), self._cluster.liveness

        def step(view: ClusterView) -> ClusterView:
            view = registered(view, live.known, facts, reports, now)
            live.nodes[facts.id] = ObservedNode(now, facts.resources)
            return view

        await self._cluster.observe(step, f"node {facts.id} registered")

    async def node_observed(
        self,
        node_id: NodeId,
        resources: Resources,
        reports: Sequence[ReplicaStatus],
        stamp: Stamp | None = None,
        intent: NodeIntent = NodeIntent.SERVING,
        instance: str = "",
        warm_pool: WarmPool | None = None,
        programs: tuple[ProgramStatus, ...] = (),
    ) -> None:
        """A heartbeat; raises `unknown-node` where the agent has to register first."""
        node = self._cluster.view().nodes.get(node_id)
        if node is not None and node.facts.instance == instance:
            await self._cluster.observe_stamp(
                f"node {node_id}", stamp or Stamp(), node.facts.agent_address
            )
        now, live = self._clock.steady(), self._cluster.liveness

        def step(view: ClusterView) -> ClusterView:
            said = resources, reports, now
            view = observed(view, live.known, node_id, *said, intent=intent, instance=instance)
            live.nodes[node_id] = ObservedNode(now, resources, warm_pool, programs)
            return view

        await self._cluster.observe(step, f"heartbeat of node {node_id}")

    async def check_remembered(self) -> None:
        """Pings every replica that the view has: a restarted head's first look around. One that is
        refused is asked again, since one refusal proves nothing."""
        async with asyncio.TaskGroup() as tasks:
            for replica in self._to_ping():
                tasks.create_task(self._look_at(replica))

    async def await_expected(self, at_most: timedelta) -> None:
        """Returns when every node of the store has registered, at the latest after this: they know
        whether the store is the newest."""
        cluster = self._cluster
        with suppress(TimeoutError), watching(cluster, lambda view: (view.nodes,)) as changed:
            async with asyncio.timeout(at_most.total_seconds()):
                while any(n.state is NodeState.EXPECTED for n in cluster.view().nodes.values()):
                    await changed.wait()

    async def run(self) -> None:
        """Pings and sweeps until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            flight = SingleFlight(tasks)
            while True:
                await self._cluster.observe(self._time_passed, "time passed")
                now, replicas = self._clock.steady(), self._to_ping()
                for replica in self._due(replicas, now):
                    self._pinged_at[replica.id] = now
                    flight.start(replica.id, self._ping(replica))
                for replica in self._due_for_deep_check(replicas, now):
                    flight.start(("deep", replica.id), self._check_deeply(replica))
                await self._clock.sleep(self._ping_every)

    def _time_passed(self, view: ClusterView) -> ClusterView:
        wall_ms = int(self._clock.now().timestamp() * 1000)
        view = with_suspects(view, remaining(view.suspects, wall_ms))
        now, live = self._clock.steady(), self._cluster.liveness
        view = swept(view, live.known, now, self._patience)
        live.keep(view, now, refused_for=self._patience.lost_after)
        return view

    def _to_ping(self) -> list[Replica]:
        replicas = self._cluster.view().replicas.values()
        return [r for r in replicas if r.state in _PINGED and r.status.address]

    def _due(self, replicas: list[Replica], now: datetime) -> list[Replica]:
        """All of them, while they are few; else each in its turn, those in doubt more often. Who
        was not asked for longest goes first: or many in doubt would take all turns."""
        view = self._cluster.view()
        for gone in self._pinged_at.keys() - view.replicas.keys():
            del self._pinged_at[gone]
        rest = timedelta(seconds=len(replicas) / PINGS_PER_SECOND)
        if rest <= self._ping_every:
            return replicas
        due = [
            r
            for r in replicas
            if r.evidence is not Evidence.ANSWERS
            or not vouched_for(view, r)
            or now - self._pinged_at.get(r.id, now - rest) >= rest
        ]
        due.sort(key=lambda r: self._pinged_at.get(r.id, NEVER))
        return due[: int(PINGS_PER_SECOND * max(self._ping_every.total_seconds(), 0.01)) * 2]

    def _due_for_deep_check(self, replicas: list[Replica], now: datetime) -> list[Replica]:
        """One that was ready for a whole period, and was not checked for as long; one that a
        gateway doubts much sooner. None that a provider answers for: where that cannot be reached,
        another replica cannot reach it either."""
        if not self._deep_every:
            return []
        view = self._cluster.view()
        known, doubted = view.replicas, doubts_in(view)
        for gone in (self._deep_at.keys() | self._deep_failures.keys()) - known.keys():
            self._deep_at.pop(gone, None)
            self._deep_failures.pop(gone, None)
        return [
            r
            for r in replicas
            if r.state is ReplicaState.READY
            and not _is_managed(view, r)
            and now - max(self._deep_at.get(r.id, r.since), r.since)
            >= (min(self._deep_every, DEEP_IF_DOUBTED) if r.id in doubted else self._deep_every)
        ]

    async def _look_at(self, replica: Replica) -> None:
        if await self._ping(replica) is Ping.REFUSED:
            await self._ping(replica)

    async def _ping(self, replica: Replica) -> Ping:
        address = replica.status.address
        result = await self._pinger.ping(replica.status.where)
        now, live = self._clock.steady(), self._cluster.liveness

        def step(view: ClusterView) -> ClusterView:
            before = live.pings.get(replica.id, PingCount())
            view, live.pings[replica.id] = pinged(view, before, replica.id, address, result, now)
            return view

        await self._cluster.observe(step, f"ping of {replica.id}")
        return result

    async def _check_deeply(self, replica: Replica) -> None:
        address = replica.status.address
        generated = await self._pinger.deep_check(replica.status.where)
        now = self._clock.steady()
        of, before = self._deep_failures.get(replica.id, (address, 0))
        failures = 0 if generated else (before if of == address else 0) + 1
        self._deep_at[replica.id], self._deep_failures[replica.id] = now, (address, failures)
        await self._cluster.observe(
            lambda view: deeply_checked(view, replica.id, address, failures, now),
            f"deep check of {replica.id}",
        )


def _is_managed(view: ClusterView, replica: Replica) -> bool:
    deployment = view.deployments.get(replica.deployment)
    return bool(deployment and deployment.made_of(replica.template_digest).template.is_managed)
