"""Nodes and gateways of the simulated cluster: they obey, and fail where they are told to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from penstock.control.placement.placement import ReplicaOrder
from penstock.control.state.replica import ReplicaId, ReplicaState, ReplicaStatus
from penstock.control.state.snapshot import Routes, RouteSnapshot
from penstock.control.state.stamp import Stamp, contradiction

BROKEN = "broken"
DRAIN_STEPS = 3
BACKOFF_STEPS = 2


@dataclass
class SimulatedAgent:
    """A node agent and its replica processes; a process named BROKEN fails instead of loading."""

    processes: dict[ReplicaId, ReplicaStatus] = field(default_factory=dict)
    models: dict[ReplicaId, str] = field(default_factory=dict)  # what each process really loaded
    stamp: Stamp = field(default_factory=Stamp)
    silent: int = 0  # steps for which nothing goes to it or comes from it
    ends_all: bool = False  # each process on this machine ends soon after its start
    _since: dict[ReplicaId, int] = field(default_factory=dict)

    def accepts(self, stamp: Stamp) -> bool:
        """The rule of every receiver: nothing from another cluster, or from an older head."""
        if contradiction(stamp, self.stamp):
            return False
        self.stamp = stamp
        return True

    def start(self, order: ReplicaOrder) -> ReplicaStatus:
        """Starts a process, unless it runs."""
        if order.replica_id not in self.processes:
            self.models[order.replica_id] = order.model
            self.processes[order.replica_id] = ReplicaStatus(
                order.replica_id,
                order.deployment,
                order.deployment_uid,
                order.template_digest,
                order.generation,
                ReplicaState.STARTING,
            )
        return self.processes[order.replica_id]

    def stop(self, replica_id: ReplicaId) -> None:
        """Begins to drain a process, if it is there."""
        if replica_id in self.processes:
            self._become(replica_id, ReplicaState.DRAINING)

    def crash(self, replica_id: ReplicaId) -> None:
        """The process ends by itself; it is started again."""
        status = self.processes[replica_id]
        if status.state is not ReplicaState.DRAINING:
            self._become(replica_id, ReplicaState.BACKOFF, restarts=status.restarts + 1, address="")

    def live_on(self) -> None:
        """A second passes."""
        self.silent = max(self.silent - 1, 0)
        for replica_id, status in list(self.processes.items()):
            steps = self._since[replica_id] = self._since.get(replica_id, 0) + 1
            match status.state:
                case ReplicaState.DRAINING if steps > DRAIN_STEPS:
                    del self.processes[replica_id], self._since[replica_id]
                case ReplicaState.BACKOFF if steps > BACKOFF_STEPS:
                    self._become(replica_id, ReplicaState.STARTING)
                case ReplicaState.STARTING if self.ends_all:
                    self.crash(replica_id)
                case ReplicaState.STARTING if self.models[replica_id] == BROKEN:
                    self._become(replica_id, ReplicaState.FAILED, last_error="cannot load broken")
                case ReplicaState.STARTING:
                    pid = status.pid + 1
                    self._become(
                        replica_id, ReplicaState.READY, pid=pid, address=f"{replica_id}:{pid}"
                    )

    def _become(self, replica_id: ReplicaId, state: ReplicaState, **changes: object) -> None:
        if self.processes[replica_id].state is not state:
            self._since[replica_id] = 0
        status = replace(self.processes[replica_id], state=state, **changes)  # type: ignore[arg-type]
        self.processes[replica_id] = status


@dataclass
class SimulatedGateway:
    """Routes by the newest snapshot that it accepted."""

    version: int = 0
    routes: Routes = field(default_factory=Routes)
    stamp: Stamp = field(default_factory=Stamp)
    silent: int = 0

    def hear(self, snapshot: RouteSnapshot) -> None:
        """Takes a snapshot, unless it is of another cluster or an older head."""
        if not self.silent and not contradiction(snapshot.stamp, self.stamp):
            self.version, self.routes, self.stamp = (
                snapshot.version,
                snapshot.routes,
                snapshot.stamp,
            )

    def sends_to(self) -> set[ReplicaId]:
        """The replicas that it may send a request to: what it holds of another uid it drops."""
        uids = {d.name: d.uid for d in self.routes.deployments}
        return {
            ReplicaId(r.id)
            for r in self.routes.replicas
            if r.state is ReplicaState.READY and uids.get(r.deployment) == r.deployment_uid
        }
