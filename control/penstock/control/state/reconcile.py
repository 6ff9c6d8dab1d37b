"""Desired and actual state to a list of actions. Pure, and safe to repeat at any moment.

Level-triggered: the plan follows from the view alone, so a head that died between two steps goes
on where the view says it stands. A replica's life in actions: Place (the view gets a pending
replica), Start (its agent is asked, until it confirms), Drain (the view says so, routes follow),
Stop (its agent is asked, until it obeys).

An update surges by one: one new replica, and only when it is ready one old replica drains. Old
replicas that serve are therefore never fewer than what the new version has not yet made up for; a
new version that does not become ready takes nothing down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from penstock.control.state.cluster import ClusterView
from penstock.control.state.deployment import Deployment, DeploymentName
from penstock.control.state.replica import (
    Evidence,
    NodeId,
    NodeState,
    Replica,
    ReplicaId,
    ReplicaState,
)

LIVE = frozenset(
    {
        ReplicaState.PENDING,
        ReplicaState.STARTING,
        ReplicaState.READY,
        ReplicaState.BACKOFF,
        ReplicaState.FAILED,
    }
)


@dataclass(frozen=True, slots=True)
class Place:
    """Give a new replica of the deployment's present template to a node."""

    deployment: DeploymentName
    node: NodeId


@dataclass(frozen=True, slots=True)
class Start:
    """Ask the agent of a pending replica to start it."""

    replica_id: ReplicaId


@dataclass(frozen=True, slots=True)
class Drain:
    """Send a replica nothing new from now on; it will be stopped."""

    replica_id: ReplicaId
    reason: str
    trouble: str = ""  # what the deployment's status says from now on; empty: nothing went wrong


@dataclass(frozen=True, slots=True)
class Stop:
    """Ask the agent of a draining replica to stop it."""

    replica_id: ReplicaId


@dataclass(frozen=True, slots=True)
class Settle:
    """All replicas are ready: what the deployment's status said of trouble is over."""

    deployment: DeploymentName


Action = Place | Start | Drain | Stop | Settle


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long a replica may take."""

    ready: timedelta  # from starting to ready
    retry_failed: timedelta  # from failed to the next attempt


def plan(view: ClusterView, now: datetime, deadlines: Deadlines) -> list[Action]:
    """What to do next; empty once everything is as desired."""
    actions: list[Action] = []
    loads = _NodeLoads(view)
    for _, deployment in sorted(view.deployments.items()):
        actions += _given_up(view, deployment, now, deadlines)
        actions += _converge(view, deployment, loads)
    actions += _abandoned(view)
    actions += _errands(view)
    return actions


def serves(replica: Replica) -> bool:
    """Whether clients get answers from it, as far as the head can tell."""
    return replica.state is ReplicaState.READY and replica.evidence is not Evidence.GONE


class _NodeLoads:
    """Replicas on each ready node, this plan's own placements included."""

    def __init__(self, view: ClusterView) -> None:
        self._count = Counter(
            r.node for r in view.replicas.values() if r.state is not ReplicaState.LOST
        )
        self._ready = sorted(n.id for n in view.nodes.values() if n.state is NodeState.READY)

    def place(self, deployment: DeploymentName, count: int) -> Iterator[Action]:
        """Up to `count` placements, each on the least loaded node; none where no node is ready."""
        for _ in range(count if self._ready else 0):
            node = min(self._ready, key=lambda node_id: (self._count[node_id], node_id))
            self._count[node] += 1
            yield Place(deployment, node)

    def __getitem__(self, node_id: NodeId) -> int:
        return self._count[node_id]


def _converge(view: ClusterView, deployment: Deployment, loads: _NodeLoads) -> Iterator[Action]:
    name, wanted = deployment.spec.name, deployment.spec.replicas
    live = [r for r in view.replicas_for(deployment) if r.state in LIVE]
    current = [r for r in live if is_current(deployment, r)]
    old = [r for r in live if not is_current(deployment, r)]
    yield from _drain_surplus(current, len(current) - wanted, "more than wanted", loads)
    if old:
        yield from _update(view, deployment, current, old, loads)
        return
    yield from loads.place(name, wanted - len(current))
    if deployment.trouble and len(current) == wanted and all(serves(r) for r in current):
        yield Settle(name)


def _update(
    view: ClusterView,
    deployment: Deployment,
    current: list[Replica],
    old: list[Replica],
    loads: _NodeLoads,
) -> Iterator[Action]:
    wanted = deployment.spec.replicas
    useless = list(_useless(current, old, wanted))
    for replica in useless:
        yield Drain(replica.id, "of an older template, and not ready")
    kept = [r for r in old if r not in useless]
    spare = sum(map(serves, current)) + sum(map(serves, kept)) - wanted
    surplus = [r for r in kept if serves(r)][: max(spare, 0)]
    for replica in surplus:
        yield Drain(replica.id, "of an older template")
    stopping = sum(
        1
        for r in view.replicas_for(deployment)
        if r.state is ReplicaState.DRAINING and _node_ready(view, r)
    )
    running = len(current) + len(old) + stopping
    if len(current) < wanted and all(map(serves, current)) and running <= wanted:
        yield from loads.place(deployment.spec.name, 1)


def _useless(current: list[Replica], old: list[Replica], wanted: int) -> Iterator[Replica]:
    """Old replicas that serve nobody and that nobody has to wait for."""
    new_version_works = any(map(serves, current))
    excess = len(old) - wanted
    for replica in old:
        if serves(replica):
            continue
        never_served = replica.state in (ReplicaState.FAILED, ReplicaState.PENDING)
        if never_served or new_version_works or excess > 0:
            excess -= 1
            yield replica


def _drain_surplus(
    replicas: list[Replica], count: int, reason: str, loads: _NodeLoads
) -> Iterator[Action]:
    """Those that do not serve go first, then those on the fullest nodes, then the youngest."""
    order = sorted(replicas, key=lambda r: r.assigned_at, reverse=True)
    order.sort(key=lambda r: (serves(r), -loads[r.node]))
    for replica in order[: max(count, 0)]:
        yield Drain(replica.id, reason)


def _given_up(
    view: ClusterView, deployment: Deployment, now: datetime, deadlines: Deadlines
) -> Iterator[Action]:
    """Attempts that came to nothing make room for the next, and leave their reason behind."""
    for replica in view.replicas_for(deployment):
        if not is_current(deployment, replica):
            continue
        lasted = now - replica.since
        if replica.state is ReplicaState.FAILED and lasted >= deadlines.retry_failed:
            why = f"{replica.id} failed: {replica.status.last_error or 'no reason given'}"
            yield Drain(replica.id, "failed, tried anew", trouble=why)
        elif replica.state is ReplicaState.STARTING and lasted >= deadlines.ready:
            why = f"{replica.id} was not ready after {deadlines.ready.total_seconds():.0f} s"
            yield Drain(replica.id, "not ready in time, tried anew", trouble=why)


def _abandoned(view: ClusterView) -> Iterator[Action]:
    for _, replica in sorted(view.replicas.items()):
        if replica.state in LIVE and view.owner(replica) is None:
            yield Drain(replica.id, "its deployment is deleted")


def _errands(view: ClusterView) -> Iterator[Action]:
    for _, replica in sorted(view.replicas.items()):
        if not _node_ready(view, replica):
            continue
        if replica.state is ReplicaState.PENDING and _may_start(view, replica):
            yield Start(replica.id)
        elif (
            replica.state is ReplicaState.DRAINING
            and replica.status.state is not ReplicaState.DRAINING
        ):
            yield Stop(replica.id)


def is_current(deployment: Deployment, replica: Replica) -> bool:
    """Whether the replica is made of what the deployment now asks for."""
    return (
        replica.deployment_uid == deployment.uid
        and replica.template_digest == deployment.template_digest
        and replica.is_as_ordered
    )


def _may_start(view: ClusterView, replica: Replica) -> bool:
    deployment = view.owner(replica)
    return deployment is not None and is_current(deployment, replica)


def _node_ready(view: ClusterView, replica: Replica) -> bool:
    node = view.nodes.get(replica.node)
    return node is not None and node.state is NodeState.READY
