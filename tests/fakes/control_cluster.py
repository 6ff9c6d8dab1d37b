"""A whole cluster without processes or time: the head's pure parts, between simulated machines.

Each step is a second. The head sweeps, hears heartbeats, pings, decides, calls agents and tells
gateways, as its managers do; what it writes goes through the store's documents. Messages are lost
while a machine is `silent`, arrive a step late where `late` says so; the head can be cut off from
all replicas, restarted, or restarted with an older store or an empty one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count

from penstock.control.errors import UnknownNode
from penstock.control.placement.placement import order_for
from penstock.control.state.actions import Action, Call, Decision, Start
from penstock.control.state.cluster import (
    ClusterView,
    Gateway,
    GatewayReport,
    GatewayState,
)
from penstock.control.state.command import heard_stamp, take_over, taken_over
from penstock.control.state.deployment import DeploymentName, DeploymentSpec, changed, created
from penstock.control.state.health import heard, registered, swept
from penstock.control.state.liveness import Liveness
from penstock.control.state.pings import Ping, pinged
from penstock.control.state.placing import answered, applied
from penstock.control.state.reconcile import calls, decisions
from penstock.control.state.replica import (
    NodeId,
    Replica,
    ReplicaId,
    ReplicaState,
    ReplicaStatus,
    Resources,
)
from penstock.control.state.serving import is_current
from penstock.control.state.snapshot import Routes, RouteSnapshot, routes_of, with_published
from penstock.control.state.stamp import Stamp
from penstock.control.state.withholding import withheld
from penstock.control.store.documents import changes_between, view_of
from penstock.control.store.store import Contents, Key, Stored
from tests.fakes.control_machines import (
    BROKEN,
    DRAIN_STEPS,
    SimulatedAgent,
    SimulatedGateway,
)
from tests.fakes.control_values import DEADLINES, NOON, PATIENCE, SECOND, node

__all__ = ["BROKEN", "DRAIN_STEPS", "SimulatedCluster"]

_SETTLED = DRAIN_STEPS + 8


class SimulatedCluster:
    """Nodes n0, n1..., gateways g0, g1..., and one head with its store."""

    def __init__(self, nodes: int = 1, gateways: int = 1) -> None:
        self.now: datetime = NOON
        self.wall_offset = timedelta()
        self.view, self.live = ClusterView(), Liveness()
        self.agents = {NodeId(f"n{number}"): SimulatedAgent() for number in range(nodes)}
        self.gateways = {f"g{number}": SimulatedGateway() for number in range(gateways)}
        self.cut_off = 0  # steps for which the head reaches no replica
        self.late: set[NodeId] = set()  # nodes whose next heartbeat says what the last one said
        self.models_of: dict[str, set[str]] = {}  # by deployment uid: all that it ever was made of
        self.stores: list[tuple[Stamp, dict[Key, Stored]]] = [(Stamp("c1", 1, 0), {})]
        self.snapshot = RouteSnapshot(0, NOON, Routes())
        self.after_decisions: Callable[[ClusterView, ClusterView], None] = lambda old, new: None
        self.before_call: Callable[[Call], None] = lambda call: None
        self._said: dict[NodeId, list[ReplicaStatus]] = {}
        self._serial = count(1)

    @property
    def stamp(self) -> Stamp:
        return self.stores[-1][0]

    # ---- what operators do

    def put(self, spec: DeploymentSpec) -> None:
        """Creates a deployment, or changes it."""
        known = self.view.deployments.get(spec.name)
        uid = known.uid if known else f"u{next(self._serial)}"
        made = changed(known, spec, self._wall()) if known else created(spec, self._wall(), uid=uid)
        self.models_of.setdefault(uid, set()).add(spec.template.model)
        if not self.view.held:
            self._write(self.view.with_deployment(made))

    def delete(self, name: DeploymentName) -> None:
        """Deletes a deployment."""
        if not self.view.held:
            self._write(self.view.without_deployment(name))

    def drain_node(self, node_id: NodeId, *, draining: bool = True) -> None:
        """Asks for an empty node."""
        self._write(self.view.with_node(replace(self.view.nodes[node_id], draining=draining)))

    def take_over(self) -> tuple[str, ...]:
        """`penstock head --take-over`; returns the difference that it shows."""
        taken = take_over(self.view, self.stamp, list(self.live.stamps.values()))
        new = taken_over(self.view)
        self.stores.append((taken.stamp, self.stores[-1][1]))
        self._write(new)
        return taken.differences

    # ---- what happens to the head

    def restart_head(self, *, steps_back: int = 0, empty: bool = False) -> None:
        """Kills the head and starts it: on its store, on an older one, or on none."""
        if empty:
            self.stores.append((Stamp("c2", 1, 0), {}))
        elif steps_back:
            self.stores.append(self.stores[max(len(self.stores) - 1 - steps_back, 0)])
        stamp, documents = self.stores[-1]
        self.view = view_of(Contents(stamp.revision, documents), self.now)
        self.live, self._said = Liveness(), {}
        self.snapshot = RouteSnapshot(self.snapshot.version, NOON, Routes())

    def step_clock(self, by: timedelta) -> None:
        """Somebody sets the head's wall clock."""
        self.wall_offset += by

    # ---- time

    def step(self) -> list[Action]:
        """A second passes; returns what the head did in it."""
        self.now += SECOND
        self.cut_off = max(self.cut_off - 1, 0)
        for agent in self.agents.values():
            agent.live_on()
        self._see(swept(self.view, self.live, self.now, PATIENCE))
        for node_id, agent in self.agents.items():
            if not agent.silent:
                self._heartbeat(node_id, agent)
        self._ping_all()
        made = self._decide()
        self._tell_gateways()
        called = calls(self.view, self.now, DEADLINES)
        for call in called:
            self.before_call(call)
            self._call(call)
        return [*made, *called]

    def settle(self, steps: int = 150) -> None:
        """Steps until nothing is left to do for a while; fails where that does not come."""
        quiet = 0
        for _ in range(steps):
            quiet = 0 if self.step() else quiet + 1
            if quiet > _SETTLED:
                return
        raise AssertionError(f"still busy after {steps} steps: {self.step()}")

    # ---- what is so, whatever the head believes

    def ready(self) -> list[ReplicaStatus]:
        """Processes that serve."""
        found = [s for agent in self.agents.values() for s in agent.processes.values()]
        return [s for s in found if s.state is ReplicaState.READY]

    def ready_models(self) -> list[str]:
        """What those that serve have loaded."""
        return sorted(
            agent.models[i]
            for agent in self.agents.values()
            for i, status in agent.processes.items()
            if status.state is ReplicaState.READY
        )

    def running(self) -> int:
        """All processes."""
        return sum(len(agent.processes) for agent in self.agents.values())

    def holder(self, replica_id: ReplicaId) -> SimulatedAgent | None:
        """The agent on whose machine the replica runs."""
        found = (a for a in self.agents.values() if replica_id in a.processes)
        return next(found, None)

    # ---- the head

    def _heartbeat(self, node_id: NodeId, agent: SimulatedAgent) -> None:
        who = f"node {node_id}"
        self.live.stamps[who] = agent.stamp
        self.view = heard_stamp(self.view, self.stamp, who, agent.stamp)
        reports = list(agent.processes.values())
        if node_id in self.late:
            self.late.discard(node_id)
            reports = self._said.get(node_id, reports)
        self._said[node_id] = list(agent.processes.values())
        try:
            new = heard(self.view, self.live, node_id, Resources(), reports, self.now)
        except UnknownNode:
            new = registered(self.view, self.live, node(node_id).facts, reports, self.now)
        self._see(new)
        agent.accepts(self.stamp)

    def _ping_all(self) -> None:
        for replica in list(self.view.replicas.values()):
            if replica.state in (ReplicaState.READY, ReplicaState.DRAINING):
                result = Ping.TIMED_OUT if self.cut_off else self._truth(replica)
                address = replica.status.address
                new = pinged(self.view, self.live, replica.id, address, result, self.now)
                self._see(new)

    def _truth(self, replica: Replica) -> Ping:
        agent = self.holder(replica.id)
        status = agent.processes[replica.id] if agent else None
        answers = status and status.state in (ReplicaState.READY, ReplicaState.DRAINING)
        return Ping.ANSWERED if answers else Ping.REFUSED

    def _decide(self) -> list[Decision]:
        made = decisions(self.view, self.now, DEADLINES)
        old = self.view
        if made:
            self._write(applied(old, made, lambda: str(next(self._serial)), self.now))
        self.after_decisions(old, self.view)
        return made

    def _call(self, call: Call) -> None:
        replica = self.view.replicas[call.replica_id]
        agent = self.agents[replica.node]
        if agent.silent or not agent.accepts(self.stamp):
            return
        if isinstance(call, Start):
            deployment = self.view.owner(replica)
            if deployment and is_current(deployment, replica):
                status = agent.start(order_for(deployment, replica))
                self._see(answered(self.view, status, self.now))
        else:
            agent.stop(replica.id)

    def _tell_gateways(self) -> None:
        for name, gateway in self.gateways.items():
            gateway.silent = max(gateway.silent - 1, 0)
            if not gateway.silent:
                self._report(name, gateway)
        routes = routes_of(self.view)
        if not withheld(self.view, self.snapshot.routes, routes):
            if routes != self.snapshot.routes or self.snapshot.stamp.epoch != self.stamp.epoch:
                version = self.snapshot.version + 1
                self.snapshot = RouteSnapshot(version, self._wall(), routes, self.stamp)
            self.view = with_published(self.view, self.snapshot)
            for gateway in self.gateways.values():
                gateway.hear(self.snapshot)

    def _report(self, name: str, gateway: SimulatedGateway) -> None:
        self.live.gateways[name] = self.now
        self.live.stamps[f"gateway {name}"] = gateway.stamp
        self.view = heard_stamp(self.view, self.stamp, f"gateway {name}", gateway.stamp)
        known = self.view.gateways.get(name) or Gateway(name, GatewayState.REMOTE)
        report = GatewayReport(self._wall(), gateway.version)
        self.view = self.view.with_gateway(replace(known, report=report, reporting=True))

    def _see(self, new: ClusterView) -> None:
        if self.view.held:
            self.view = new
        else:
            self._write(new)

    def _write(self, new: ClusterView) -> None:
        changes = changes_between(self.view, new)
        self.view = new
        if not changes:
            return
        stamp, documents = self.stores[-1]
        documents, revision = dict(documents), stamp.revision + 1
        for change in changes:
            documents.pop(change.key, None)
            if change.document is not None:
                documents[change.key] = Stored(change.document, revision)
        self.stores.append((replace(stamp, revision=revision), documents))

    def _wall(self) -> datetime:
        return self.now + self.wall_offset
