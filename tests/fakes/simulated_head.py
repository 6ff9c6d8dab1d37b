"""The head of the simulated cluster: the real managers and the real store of it, between fakes.

What stands around them here is what a network and a disk would be: the store in memory, agents,
replicas and gateways reached through the lines that the cluster gives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Protocol

from penstock.control.managers.canary.canaries import CanaryManager
from penstock.control.managers.canary.judging import CanaryJudge
from penstock.control.managers.canary.records import CanaryRecords
from penstock.control.managers.cluster_store import ClusterStore, Planned
from penstock.control.managers.events import EventManager
from penstock.control.managers.fleet.gateway_reports import GatewayReports
from penstock.control.managers.fleet.gateway_signs import GatewaySigns
from penstock.control.managers.fleet.health import HealthManager, ReplicaPinger
from penstock.control.managers.rollout.deployments import DeploymentManager
from penstock.control.managers.routing.routes import RouteManager
from penstock.control.managers.startup import look_around_then_act
from penstock.control.managers.tenancy.shares import ShareManager
from penstock.control.placement.agents import AgentClient, AgentPlacement
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.health import Patience
from penstock.control.state.rollout.replacing import Deadlines
from penstock.control.state.stamp import Stamp
from penstock.control.store.store import Store
from tests.fakes.control_values import PATIENCE, SECOND
from tests.fakes.event_counts import EventCounts
from tests.fakes.simulated_canaries import SimulatedReports
from tests.fakes.simulated_time import SimulatedClock

# As in the head's own settings, but for the long ones.
DEADLINES = Deadlines(
    ready=timedelta(minutes=10),
    retry_failed=timedelta(minutes=1),
)
EXPECT_NODES_FOR = timedelta(seconds=3)

AfterDecisions = Callable[[ClusterView, ClusterView], None]


class World(Protocol):
    """What a head reaches."""

    def dial(self, address: str, own_stamp: Callable[[], Stamp]) -> AgentClient:
        """A line to the agent at this address."""

    def pinger(self) -> ReplicaPinger:
        """A line to all replicas."""


class WatchedClusterStore(ClusterStore):
    """Shows each decision of the managers, before and after, to whoever checks them."""

    def __init__(self, store: Store, clock: SimulatedClock, after: AfterDecisions) -> None:
        super().__init__(store, clock)
        self._after = after

    async def apply_plan(self, plan: Callable[[ClusterView], Planned]) -> ClusterView:
        def watched(view: ClusterView) -> Planned:
            planned = plan(view)
            self._after(view, planned[0])
            return planned

        return await super().apply_plan(watched)


class SimulatedHead:
    """One life of a head, from its store to its end."""

    def __init__(
        self,
        store: Store,
        clock: SimulatedClock,
        world: World,
        serial: Iterator[int],
        after_decisions: AfterDecisions,
        patience: Patience = PATIENCE,
    ) -> None:
        self.clock = clock
        self.cluster = WatchedClusterStore(store, clock, after_decisions)
        self.health = HealthManager(
            self.cluster, world.pinger(), clock, patience, ping_every=SECOND
        )
        self.routes = RouteManager(self.cluster, clock)
        self._shares = ShareManager(self.cluster, clock)
        self._store = store
        self.reports = GatewayReports(self.cluster, GatewaySigns(clock), clock)
        self.canaries = CanaryManager(self.cluster, clock)
        kept = SimulatedReports()
        self._judge = CanaryJudge(
            self.cluster, CanaryRecords(self.cluster, kept, kept, clock), clock
        )
        self._deployments = DeploymentManager(
            self.cluster,
            AgentPlacement(lambda address: world.dial(address, lambda: self.cluster.stamp)),
            clock,
            DEADLINES,
            drain=SECOND,
            new_id=lambda: str(next(serial)),
        )

    async def run(self) -> None:
        """Runs every part until cancelled, as `head.py` does."""
        events = EventManager(self.cluster, self._store, self.clock, EventCounts())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(
                look_around_then_act(
                    self.health,
                    self.routes,
                    self._deployments,
                    expect_nodes_for=EXPECT_NODES_FOR,
                    before_acting=self._before_acting,
                )
            )
            tasks.create_task(self.health.run())
            tasks.create_task(self.routes.run())
            tasks.create_task(self._tell_shares())
            tasks.create_task(events.run())
            tasks.create_task(self._judge.run())

    async def _before_acting(self) -> None:
        self._judge.open()

    async def _tell_shares(self) -> None:
        while True:
            await self._shares.tell()
            await self.clock.sleep(SECOND)
