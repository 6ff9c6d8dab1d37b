"""Nodes and gateways of the simulated cluster: they obey, and fail where they are told to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from penstock.control.errors import Code, NotFound
from penstock.control.node_agent.allegiance import refusal
from penstock.control.placement.placement import ReplicaOrder
from penstock.control.state.fleet.replica import (
    WOKE_WRONG,
    KeptAdapter,
    ReplicaId,
    ReplicaState,
    ReplicaStatus,
)
from penstock.control.state.routing.snapshot import Routes, RouteSnapshot
from penstock.control.state.stamp import Stamp, contradiction
from tests.fakes.simulated_canaries import SimulatedBook

BROKEN = "broken"  # fails instead of loading
FLAKY = "flaky"  # ends by itself soon after it was ready, again and again
DRAIN_STEPS = 3
BACKOFF_STEPS = 2
FLAKY_STEPS = 3  # less than a head takes for proof


@dataclass
class SimulatedAgent:
    """A node agent and its replica processes."""

    processes: dict[ReplicaId, ReplicaStatus] = field(default_factory=dict)
    models: dict[ReplicaId, str] = field(default_factory=dict)  # what each process really loaded
    kept: dict[ReplicaId, tuple[KeptAdapter, ...]] = field(default_factory=dict)  # as last told
    stamp: Stamp = field(default_factory=Stamp)
    instance: str = "first"
    silent: int = 0  # steps for which nothing goes to it or comes from it
    dead: int = 0  # steps for which the whole machine is off
    loses: int = 0  # orders of a head that do not arrive
    mute: int = 0  # orders that it obeys, and the answer does not arrive
    ends_all: bool = False  # each process on this machine ends soon after its start
    sleepy: set[ReplicaId] = field(default_factory=set)  # that drain towards their sleep
    sleepless: bool = False  # what it is to put to sleep it ends, as older agents do
    wakes_wrong: bool = False  # what it is to wake ends, and is started again
    _since: dict[ReplicaId, int] = field(default_factory=dict)

    @property
    def is_away(self) -> bool:
        """Whether no message passes."""
        return bool(self.silent or self.dead)

    def accepts(self, stamp: Stamp) -> bool:
        """The rule of every agent: nothing from another cluster, or from an older head."""
        if refusal(self.stamp, stamp):
            return False
        self.stamp = stamp
        return True

    def start(self, order: ReplicaOrder) -> ReplicaStatus:
        """Starts a process, unless it runs; one that sleeps is woken."""
        woken = self.processes.get(order.replica_id)
        if woken and woken.state is ReplicaState.ASLEEP:
            self._become(order.replica_id, ReplicaState.STARTING, wakes=woken.wakes + 1)
        if order.replica_id not in self.processes:
            self.models[order.replica_id] = order.model
            self.kept[order.replica_id] = order.adapters
            self.processes[order.replica_id] = ReplicaStatus(
                order.replica_id,
                order.deployment,
                order.deployment_uid,
                order.template_digest,
                order.generation,
                ReplicaState.STARTING,
                adapter_slots=order.max_adapters,
                max_adapter_rank=order.max_adapter_rank,
            )
        return self.processes[order.replica_id]

    def keep(self, replica_id: ReplicaId, kept: Sequence[KeptAdapter]) -> None:
        """A process is to hold these from now on: it does a second later, if it serves."""
        if replica_id not in self.processes:
            raise NotFound(f"no replica {replica_id}", Code.UNKNOWN_REPLICA)
        self.kept[replica_id] = tuple(kept)

    def stop(self, replica_id: ReplicaId, *, sleep: bool = False) -> None:
        """Begins to drain a process, if it is there, towards its end or, where it serves, its
        sleep."""
        status = self.processes.get(replica_id)
        if status is None:
            return
        asleep = sleep and (status.state is ReplicaState.ASLEEP or replica_id in self.sleepy)
        if asleep:
            return
        self.sleepy.discard(replica_id)
        if sleep and status.state is ReplicaState.READY and not self.sleepless:
            self.sleepy.add(replica_id)
        self._become(replica_id, ReplicaState.DRAINING)

    def crash(self, replica_id: ReplicaId) -> None:
        """The process ends by itself; it is started again."""
        status = self.processes[replica_id]
        if status.state is not ReplicaState.DRAINING:
            ended: dict[str, object] = {"address": "", "adapters": (), "adapter_digests": ()}
            ended |= {"wakes": 0, "exit_code": WOKE_WRONG if status.wakes else 1}
            restarts = status.restarts + 1
            self._become(replica_id, ReplicaState.BACKOFF, restarts=restarts, **ended)

    def die(self, steps: int) -> None:
        """The machine is off for so long, and its processes are gone."""
        self.dead = steps
        self.processes.clear()

    def live_on(self) -> None:
        """A second passes."""
        self.silent, self.dead = max(self.silent - 1, 0), max(self.dead - 1, 0)
        for replica_id, status in list(self.processes.items()):
            steps = self._since[replica_id] = self._since.get(replica_id, 0) + 1
            match status.state:
                case ReplicaState.DRAINING if steps > DRAIN_STEPS and replica_id in self.sleepy:
                    self.sleepy.discard(replica_id)
                    self._become(replica_id, ReplicaState.ASLEEP)
                case ReplicaState.DRAINING if steps > DRAIN_STEPS:
                    del self.processes[replica_id], self._since[replica_id]
                case ReplicaState.BACKOFF if steps > BACKOFF_STEPS:
                    self._become(replica_id, ReplicaState.STARTING)
                case ReplicaState.STARTING:
                    self._load(replica_id, status)
                case ReplicaState.READY if self.models[replica_id] == FLAKY and steps > FLAKY_STEPS:
                    self.crash(replica_id)
                case ReplicaState.READY:
                    self._hold(replica_id)

    def _load(self, replica_id: ReplicaId, status: ReplicaStatus) -> None:
        if self.ends_all or (status.wakes and self.wakes_wrong):
            self.crash(replica_id)
        elif status.wakes:  # the process that was asleep, where it was
            self._become(replica_id, ReplicaState.READY)
        elif self.models[replica_id] == BROKEN:
            self._become(replica_id, ReplicaState.FAILED, last_error="cannot load broken")
        else:
            pid = status.pid + 1
            self._become(replica_id, ReplicaState.READY, pid=pid, address=f"{replica_id}:{pid}")
            self._hold(replica_id)

    def _hold(self, replica_id: ReplicaId) -> None:
        kept = self.kept.get(replica_id, ())
        self.processes[replica_id] = replace(
            self.processes[replica_id],
            adapters=tuple(each.name for each in kept),
            adapter_digests=tuple(each.digest for each in kept),
        )

    def _become(self, replica_id: ReplicaId, state: ReplicaState, **changes: object) -> None:
        if self.processes[replica_id].state is not state:
            self._since[replica_id] = 0
        status = replace(self.processes[replica_id], state=state, **changes)  # type: ignore[arg-type]
        self.processes[replica_id] = status


@dataclass
class SimulatedGateway:
    """Routes by the newest snapshot that it accepted, `lag` steps after that was told."""

    version: int = 0
    routes: Routes = field(default_factory=Routes)
    stamp: Stamp = field(default_factory=Stamp)
    silent: int = 0
    lag: int = 0
    connected: int = 0  # steps since it was silent
    book: SimulatedBook = field(default_factory=SimulatedBook)
    _pending: list[tuple[int, RouteSnapshot]] = field(default_factory=list)

    def take(self, snapshot: RouteSnapshot) -> None:
        """Takes a snapshot in hand."""
        self._pending.append((self.lag, snapshot))
        self._apply()

    def live_on(self) -> None:
        """A second passes."""
        self.silent = max(self.silent - 1, 0)
        self.connected = 0 if self.silent else self.connected + 1
        self._pending = [(left - 1, snapshot) for left, snapshot in self._pending]
        self._apply()

    def is_replaced(self, instance: str) -> None:
        """Another process serves on: it has the routes, and has counted nothing."""
        self.book = SimulatedBook(instance)
        self.book.follows(self.routes)

    def sends_to(self) -> dict[ReplicaId, str]:
        """The replicas that it may send a request to, and their addresses: what it holds of
        another uid it drops."""
        uids = {d.name: d.uid for d in self.routes.deployments}
        return {
            ReplicaId(r.id): r.address
            for r in self.routes.replicas
            if r.state is ReplicaState.READY and uids.get(r.deployment) == r.deployment_uid
        }

    def _apply(self) -> None:
        """One after the other, unless it is of another cluster or an older head."""
        while self._pending and self._pending[0][0] <= 0:
            _, snapshot = self._pending.pop(0)
            if not contradiction(snapshot.stamp, self.stamp):
                self.version, self.routes = snapshot.version, snapshot.routes
                self.stamp = snapshot.stamp
                self.book.follows(self.routes)
