"""A whole cluster without processes or waiting: a real head's managers between simulated machines.

Each step is a second. Agents and gateways tell the head how they are and do what it says; messages
are lost while one of them is `silent`, orders and answers where `loses` and `mute` say so, a
heartbeat arrives late where `late` does. Gateways lag in taking snapshots up. The head can be cut
off from all replicas, stopped for a while, or started with an older store, an empty one, or one
that cannot be read; its wall clock can be set.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from types import TracebackType
from typing import Any, TypeVar, cast

from penstock.control.errors import HoldsStill, NotAdmitted, NotFound
from penstock.control.managers.canary.canaries import CanaryManager
from penstock.control.placement.agents import AgentClient
from penstock.control.state.canary.canary import Canary
from penstock.control.state.canary.ending import moved_on
from penstock.control.state.canary.revisions import begun
from penstock.control.state.cluster import ClusterView, GatewayReport
from penstock.control.state.events import KeptEvent, Wanted
from penstock.control.state.fleet.replica import (
    NodeId,
    ReplicaId,
    ReplicaState,
    ReplicaStatus,
    Resources,
)
from penstock.control.state.rollout.deployment import (
    Deployment,
    DeploymentName,
    DeploymentSpec,
    changed,
    created,
)
from penstock.control.state.routing.snapshot import RouteSnapshot
from penstock.control.state.stamp import Stamp
from penstock.control.store.store import Author, Change, Contents, Key
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import node
from tests.fakes.simulated_head import SimulatedHead
from tests.fakes.simulated_lines import AgentLine, ReplicaLine
from tests.fakes.simulated_machines import DRAIN_STEPS, SimulatedAgent, SimulatedGateway
from tests.fakes.simulated_time import SimulatedClock, SimulatedTimeLoop, WallClock

OPERATOR = Author("admin", "test")
_SETTLED = DRAIN_STEPS + 8

_T = TypeVar("_T")


class SimulatedCluster:
    """Nodes n0, n1..., gateways g0, g1..., and one head with its store."""

    def __init__(self, nodes: int = 1, gateways: int = 1) -> None:
        self.agents = {NodeId(f"n{number}"): SimulatedAgent() for number in range(nodes)}
        self.seconds: list[tuple[NodeId, SimulatedAgent]] = []  # that claim the id of another
        self.gateways = {f"g{number}": SimulatedGateway() for number in range(gateways)}
        self.cut_off = 0  # steps for which the head reaches no replica
        self.late: set[NodeId] = set()  # nodes whose next heartbeat says what the last one said
        self.models_of: dict[str, set[str]] = {}  # by deployment uid: all that it ever was made of
        self.after_decisions: Callable[[ClusterView, ClusterView], None] = lambda old, new: None
        self.after_apply: Callable[[], None] = lambda: None
        self.before_stop: Callable[[ReplicaId], None] = lambda replica_id: None
        self.head_is_up = False
        self._said: dict[NodeId, list[ReplicaStatus]] = {}
        self._serial = count(1)
        self._store = BackedUpStore()
        self._loop = SimulatedTimeLoop()
        self._wall = WallClock(self._loop)
        self.start_head()

    def __enter__(self) -> SimulatedCluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop_head()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    @property
    def view(self) -> ClusterView:
        """What the head believes; while there is none, what the last one did."""
        return self._head.cluster.view()

    @property
    def now(self) -> datetime:
        """The time as the head measures durations."""
        return self._head.clock.steady()

    def why_refused(self) -> str:
        """What the head says of those that it does not let in."""
        refused = self._head.cluster.liveness.refused.values()
        return " ".join(each.why for each in refused)

    @property
    def stored_changes(self) -> int:
        """How many there were: for going back to what the store said at some time."""
        return self._store.changes

    def events(self) -> list[KeptEvent]:
        """What operators are told of, oldest first."""
        return list(self._run(self._store.events(Wanted())).events)

    # ---- what operators do

    def put(self, spec: DeploymentSpec) -> None:
        """Creates a deployment, or changes it; nothing comes of it while the head holds still."""

        def step(view: ClusterView) -> ClusterView:
            known, now = view.deployments.get(spec.name), self._wall.now()
            uid = known.uid if known else f"u{next(self._serial)}"
            self.models_of.setdefault(uid, set()).add(spec.template.model)
            if known is None:
                return view.with_deployment(created(spec, now, uid=uid))
            return begun(view.with_deployment(changed(known, spec, now)), known, now)

        self._apply(step)

    def change(self, make: Callable[[Deployment, datetime], Deployment]) -> None:
        """Changes the one deployment otherwise than by its spec."""

        def step(view: ClusterView) -> ClusterView:
            (known,) = view.deployments.values()
            return view.with_deployment(make(known, self._wall.now()))

        self._apply(step)

    def canary(self) -> Canary | None:
        """The one that judges the newest revision of the one deployment."""
        for known in self.view.deployments.values():
            return self.view.canaries.judging(str(known.spec.name), known.revision.number)
        return None

    def move_canary(self, make: Callable[[Canary, datetime], Canary]) -> None:
        """It was decided of that canary; nothing comes of it where there is none."""
        canary, now = self.canary(), self._wall.now()
        if canary:
            self._apply(lambda view: moved_on(view, make(canary, now), now))

    def delete(self, name: DeploymentName) -> None:
        """Deletes a deployment."""
        self._apply(lambda view: view.without_deployment(name))

    def drain_node(self, node_id: NodeId) -> None:
        """Asks for an empty node."""
        self._apply(lambda view: view.with_node(replace(view.nodes[node_id], draining=True)))

    def order(self, order: Callable[[CanaryManager], Coroutine[Any, Any, _T]]) -> _T:
        """Asks for something of a canary."""
        return self._run(order(self._head.canaries))

    def take_over(self) -> tuple[str, ...]:
        """What `penstock head --take-over` does: it listens, and returns the difference."""
        self._head.cluster.listen_to_all()
        self.step()
        self.step()
        return self._run(self._head.cluster.take_over())

    # ---- what happens to the head

    def start_head(self) -> None:
        """Starts a head on the store."""
        clock = SimulatedClock(self._loop, self._wall)
        self._head = SimulatedHead(
            self._store, clock, self, self._serial, lambda old, new: self.after_decisions(old, new)
        )
        self._run(self._head.cluster.restore())
        self._life = self._loop.create_task(self._live(self._head))
        self.head_is_up = True

    def stop_head(self) -> None:
        """Kills the head."""
        self.head_is_up = False
        self._life.cancel()
        with suppress(asyncio.CancelledError):
            self._run(self._life)

    def restart_head(
        self, *, steps_back: int = 0, empty: bool = False, unreadable: Key | None = None
    ) -> None:
        """Kills the head and starts it: on its store, on an older one, on none, or on one of which
        a document cannot be read."""
        self.stop_head()
        if empty:
            self._store = BackedUpStore()
        elif steps_back:
            self._store = self._store.earlier(steps_back)
        if unreadable:
            spoilt = [Change(unreadable, {"no": "sense"})]
            self._run(self._store.apply(spoilt, OPERATOR, self._wall.now()))
        self.start_head()

    def step_clock(self, by: timedelta) -> None:
        """Somebody sets the wall clock of the head's machine."""
        self._wall.step(by)

    # ---- time

    def step(self) -> None:
        """A second passes."""
        self.cut_off = max(self.cut_off - 1, 0)
        for agent in self.agents.values():
            agent.live_on()
        for gateway in self.gateways.values():
            gateway.live_on()
        self._run(self._second())

    def settle(self, steps: int = 150) -> None:
        """Steps until nothing changes for a while; fails where that does not come."""
        quiet, last = 0, self._state()
        for _ in range(steps):
            self.step()
            state = self._state()
            quiet, last = (quiet + 1 if state == last else 0), state
            if quiet > _SETTLED:
                return
        raise AssertionError(f"still busy after {steps} steps: {last}")

    # ---- what is so, whatever the head believes

    def ready(self) -> list[ReplicaStatus]:
        """Processes that serve."""
        found = [s for agent in self.agents.values() for s in agent.processes.values()]
        return [s for s in found if s.state is ReplicaState.READY]

    def ready_models(self) -> list[str]:
        """What those that serve have loaded."""
        return sorted(self.model(status.replica_id) for status in self.ready())

    def running(self) -> int:
        """All processes."""
        return sum(len(agent.processes) for agent in self.agents.values())

    def holder(self, replica_id: ReplicaId) -> SimulatedAgent | None:
        """The agent on whose machine the replica runs."""
        found = (a for a in self.agents.values() if replica_id in a.processes)
        return next(found, None)

    def model(self, replica_id: ReplicaId) -> str:
        """What the process has loaded."""
        agent = self.holder(replica_id)
        assert agent, f"{replica_id} runs nowhere"
        return agent.models[replica_id]

    def served_by(self, gateway: SimulatedGateway) -> set[ReplicaId]:
        """The replicas that would answer a request which the gateway sends to them now."""
        addresses = {s.replica_id: s.address for s in self.ready()}
        routes = gateway.sends_to().items()
        return {i for i, address in routes if addresses.get(i) == address}

    # ---- the lines between head and machines

    def dial(self, address: str, own_stamp: Callable[[], Stamp]) -> AgentClient:
        """A line of the head's to the agent at this address."""
        return AgentLine(self, NodeId(address.split(":")[0]), own_stamp)

    def pinger(self) -> ReplicaLine:
        """A line of the head's to all replicas."""
        return ReplicaLine(self)

    async def _live(self, head: SimulatedHead) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(head.run())
            for name, gateway in self.gateways.items():
                tasks.create_task(_watch(head, name, gateway))

    async def _second(self) -> None:
        if self.head_is_up:
            for node_id, agent in (*self.agents.items(), *self.seconds):
                if not agent.is_away:
                    await self._heartbeat(node_id, agent)
            for name, gateway in self.gateways.items():
                if not gateway.silent:
                    await self._report(name, gateway)
        await asyncio.sleep(1)
        if self.head_is_up and self._life.done():
            self._life.result()

    async def _heartbeat(self, node_id: NodeId, agent: SimulatedAgent) -> None:
        health, reports = self._head.health, list(agent.processes.values())
        if node_id in self.late:
            self.late.discard(node_id)
            reports = self._said.get(node_id, reports)
        self._said[node_id] = list(agent.processes.values())
        facts = replace(node(node_id).facts, instance=agent.instance)
        try:
            try:
                await health.node_observed(
                    node_id, Resources(), reports, agent.stamp, instance=agent.instance
                )
            except NotFound:
                await health.node_registered(facts, reports, agent.stamp)
        except NotAdmitted:
            return
        agent.accepts(self._head.cluster.stamp)

    async def _report(self, name: str, gateway: SimulatedGateway) -> None:
        with suppress(NotAdmitted):
            await self._head.reports.observe_stamp(name, gateway.stamp)
            said = GatewayReport(
                self._wall.now(),
                gateway.version,
                instance=gateway.book.instance,
                canaries=gateway.book.told(),
            )
            await self._head.reports.take(name, said)

    def _apply(self, step: Callable[[ClusterView], ClusterView]) -> None:
        with suppress(HoldsStill):
            self._run(self._head.cluster.apply(step, OPERATOR))
            self.after_apply()

    def _state(self) -> tuple[object, ...]:
        view = self.view
        processes = [dict(agent.processes) for agent in self.agents.values()]
        routes = [gateway.version for gateway in self.gateways.values()]
        return (view.deployments, view.nodes, view.replicas, processes, routes)

    def _run(self, work: Coroutine[Any, Any, _T] | asyncio.Task[_T]) -> _T:
        return self._loop.run_until_complete(work)


class BackedUpStore(MemoryStore):
    """Keeps what it said after each change."""

    def __init__(self, contents: Contents | None = None) -> None:
        super().__init__(contents)
        self._backups = [contents or Contents(0, {})]

    async def apply(self, changes: Sequence[Change], author: Author, at: datetime) -> int:
        version = await super().apply(changes, author, at)
        self._backups.append(await self.load())
        return version

    @property
    def changes(self) -> int:
        """How many were made."""
        return len(self._backups) - 1

    def earlier(self, steps: int) -> BackedUpStore:
        """A store restored from a backup that was made so many changes ago."""
        return BackedUpStore(self._backups[max(len(self._backups) - 1 - steps, 0)])


async def _watch(head: SimulatedHead, name: str, gateway: SimulatedGateway) -> None:
    """A gateway's subscription: begun anew after each time in which nothing reached it."""
    while True:
        if gateway.silent:
            await asyncio.sleep(1)
            continue
        try:
            await head.reports.observe_stamp(name, gateway.stamp)
        except NotAdmitted:
            await asyncio.sleep(1)
            continue
        watched = cast(AsyncGenerator[RouteSnapshot, None], head.routes.watch(gateway.version))
        async with aclosing(watched) as snapshots:
            async for snapshot in snapshots:
                if gateway.silent:
                    break
                gateway.take(snapshot)
