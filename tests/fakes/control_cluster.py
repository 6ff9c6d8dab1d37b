"""A cluster without processes or time: the real plan, carried out by agents that always obey."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from itertools import count

from penstock.control.state.cluster import ClusterView
from penstock.control.state.deployment import DeploymentSpec, changed, created
from penstock.control.state.health import heard, registered, swept
from penstock.control.state.placing import answered, draining, placed, settled
from penstock.control.state.reconcile import Action, Drain, Place, Settle, Start, Stop, plan
from penstock.control.state.replica import NodeId, ReplicaId, ReplicaState, ReplicaStatus, Resources
from tests.fakes.control_values import DEADLINES, NOON, PATIENCE, SECOND, node

BROKEN = "broken"
DRAIN_STEPS = 3


class SimulatedCluster:
    """Nodes whose agents obey; replicas of a model named BROKEN fail instead of getting ready."""

    def __init__(self, nodes: int = 1) -> None:
        self.now: datetime = NOON
        self.view = ClusterView()
        self.processes: dict[NodeId, dict[ReplicaId, ReplicaStatus]] = {}
        self._drains: dict[ReplicaId, int] = {}
        self._serial = count(1)
        for number in range(nodes):
            self.start_node(f"n{number}")

    def start_node(self, name: str) -> None:
        """An agent starts, or starts again, and registers what runs on its node."""
        facts = node(name).facts
        running = self.processes.setdefault(facts.id, {})
        self.view = registered(self.view, facts, running.values(), self.now)

    def put(self, spec: DeploymentSpec) -> None:
        """What an operator asks for."""
        known = self.view.deployments.get(spec.name)
        if known:
            deployment = changed(known, spec, self.now)
        else:
            deployment = created(spec, self.now, uid=f"u{next(self._serial)}")
        self.view = self.view.with_deployment(deployment)

    def step(self) -> list[Action]:
        """One plan, carried out; then a second passes, and every agent reports."""
        actions = plan(self.view, self.now, DEADLINES)
        for action in actions:
            self._carry_out(action)
        self.now += SECOND
        for node_id, processes in self.processes.items():
            for replica_id, status in processes.items():
                processes[replica_id] = self._lived_on(status)
            self._end_drained(processes)
            reports = list(processes.values())
            self.view = heard(self.view, node_id, Resources(), reports, self.now)
        self.view = swept(self.view, self.now, PATIENCE)
        return actions

    def settle(self, steps: int = 100) -> None:
        """Steps until nothing is left to do for a while; fails where that does not come."""
        quiet = 0
        for _ in range(steps):
            quiet = 0 if self.step() else quiet + 1
            if quiet > DRAIN_STEPS + 2:
                return
        raise AssertionError(f"still busy after {steps} steps: {self.step()}")

    def crash(self, replica_id: ReplicaId) -> None:
        """The replica's process ends by itself; its agent will start it again."""
        for processes in self.processes.values():
            if replica_id in processes:
                ended = replace(processes[replica_id], state=ReplicaState.BACKOFF, address="")
                processes[replica_id] = ended

    def ready(self) -> list[ReplicaStatus]:
        """Processes that really serve, whatever the head believes."""
        return [
            status
            for processes in self.processes.values()
            for status in processes.values()
            if status.state is ReplicaState.READY
        ]

    def _end_drained(self, processes: dict[ReplicaId, ReplicaStatus]) -> None:
        for replica_id, status in list(processes.items()):
            if status.state is ReplicaState.DRAINING:
                self._drains[replica_id] = self._drains.get(replica_id, 0) + 1
                if self._drains[replica_id] > DRAIN_STEPS:
                    del processes[replica_id]

    def _lived_on(self, status: ReplicaStatus) -> ReplicaStatus:
        if status.state is ReplicaState.BACKOFF:
            return replace(status, state=ReplicaState.STARTING)
        if status.state is not ReplicaState.STARTING:
            return status
        if status.log_path == BROKEN:
            return replace(status, state=ReplicaState.FAILED, last_error="cannot load broken")
        return replace(status, state=ReplicaState.READY, address=f"{status.replica_id}:1", pid=1)

    def _carry_out(self, action: Action) -> None:
        match action:
            case Place():
                replica_id = ReplicaId(f"r{next(self._serial)}")
                self.view = placed(self.view, action, replica_id, self.now)
            case Drain():
                self.view = draining(self.view, action, self.now)
            case Settle():
                self.view = settled(self.view, action)
            case Start(replica_id):
                self._start(replica_id)
            case Stop(replica_id):
                replica = self.view.replicas[replica_id]
                status = self.processes[replica.node].get(replica_id)
                if status:
                    draining_now = replace(status, state=ReplicaState.DRAINING)
                    self.processes[replica.node][replica_id] = draining_now

    def _start(self, replica_id: ReplicaId) -> None:
        replica = self.view.replicas[replica_id]
        model = self.view.deployments[replica.deployment].spec.template.model
        status = replace(replica.status, state=ReplicaState.STARTING, log_path=model)
        self.processes[replica.node].setdefault(replica_id, status)
        self.view = answered(self.view, status, self.now)
