"""How replicas take each other's place: updates, drained nodes, replicas that are wedged.

A replica is outgoing when another is to take its place. New ones are put up beside those that are
wanted, `max_surge` at a time, and only when one has been ready for a while an outgoing replica
drains. Those that serve are therefore never fewer than what the new ones have not yet made up for;
a template that does not become ready takes nothing down. Only where no accelerator is free for one
more is one taken down first: for another revision's sake as far as `max_unavailable` allows it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import (
    Evidence,
    NodeId,
    NodeIntent,
    Replica,
    ReplicaId,
    ReplicaState,
)
from penstock.control.state.fleet.serving import is_current, proven
from penstock.control.state.rollout.actions import Decision, Drain, Place, Wake
from penstock.control.state.rollout.capacity import Capacity
from penstock.control.state.rollout.deployment import Deployment
from penstock.control.state.rollout.failing import is_hopeless
from penstock.control.state.rollout.update import Update


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long a replica may take."""

    ready: timedelta  # from starting to ready
    retry_failed: timedelta  # from failed to the next attempt, twice as long after each one
    unreachable: timedelta = timedelta(seconds=60)  # ready, but without an answer to any ping
    leave_grace: timedelta = timedelta(seconds=10)  # what gateways get to route without it
    obeyed: timedelta = timedelta(seconds=60)  # what a live agent gets to start what it was given
    stopped: timedelta = timedelta(minutes=2)  # drained for longer, it holds up no update
    unasked: timedelta = timedelta(seconds=10)  # draining though nobody here asked, to come back
    retry_longest: timedelta = timedelta(hours=1)

    def retry(self, tries: int) -> timedelta:
        """What an attempt gets before the next one, so many having come to nothing before it: what
        always ends the same way ends ever more rarely."""
        return min(self.retry_longest, self.retry_failed * (1 << min(tries, 32)))


@dataclass(frozen=True, slots=True)
class Fleet:
    """The live replicas of one deployment."""

    wanted: int
    current: list[Replica]  # those that stay
    old: list[Replica]  # those that are outgoing
    reasons: Mapping[ReplicaId, str]  # why; empty for those that stay
    served: frozenset[ReplicaId]
    updated: frozenset[ReplicaId]  # outgoing, as they are of another revision
    stopping: int  # drained, not gone yet


def outgoing(
    view: ClusterView, deployment: Deployment, replica: Replica, now: datetime, deadlines: Deadlines
) -> str:
    """Why another replica is to take this one's place; empty: none is."""
    if not is_current(deployment, replica):
        if not deployment.paused:
            same = replica.template_digest == deployment.target.template_digest
            return "of before the restart" if same else "of an older template"
        if is_hopeless(replica):
            return "of a revision that is paused, and it does not get ready"
    node = view.nodes.get(replica.node)
    if node and node.draining:
        return f"its node {node.id} is drained"
    if node and node.intent is NodeIntent.LEAVING:
        return f"its node {node.id} is leaving"
    if replica.evidence is Evidence.WEDGED:
        return "it answers, but nothing comes out of its engine"
    if replica.evidence in (Evidence.DOUBTED, Evidence.GONE) and _head_reaches_others(view):
        since = replica.evidence_since or now
        if replica.state is ReplicaState.READY and now - since >= deadlines.unreachable:
            return f"no answer for {deadlines.unreachable.total_seconds():.0f} s"
    return ""


def replacements(
    deployment: Deployment,
    fleet: Fleet,
    capacity: Capacity,
    avoid: Collection[NodeId],
    now: datetime,
    deadlines: Deadlines,
) -> Iterator[Decision]:
    """The next step towards a fleet without outgoing replicas."""
    update = deployment.spec.rollout.update
    min_ready = timedelta(milliseconds=update.min_ready_ms)
    arrived = [r for r in fleet.current if proven(r, now, min_ready)]
    useless = list(_useless(fleet, new_ones_work=bool(arrived)))
    for replica in useless:
        yield Drain(replica.id, f"{fleet.reasons[replica.id]}, and not ready")
    serving_old = [r for r in fleet.old if r.id in fleet.served]
    serving_old.sort(key=lambda r: proven(r, now, min_ready))  # what may end by itself goes first
    spare = len(arrived) + len(serving_old) - fleet.wanted
    for replica in serving_old[: max(spare, 0)]:
        yield Drain(replica.id, fleet.reasons[replica.id])
    surge = _surge(fleet, update)
    placed = [*_placed(deployment, fleet, capacity, avoid, surge)]
    yield from placed
    if placed or useless or fleet.stopping or not _lacks(fleet):
        return
    if not surge or capacity.is_full(deployment):
        spare += update.max_unavailable
        yield from _free_capacity(deployment, fleet, capacity, spare)


def _surge(fleet: Fleet, update: Update) -> int:
    """How many may run beside those that are wanted: who has to leave its node always has one."""
    leaves = any(r.id not in fleet.updated for r in fleet.old)
    return max(update.max_surge, int(leaves))


def _placed(
    deployment: Deployment,
    fleet: Fleet,
    capacity: Capacity,
    avoid: Collection[NodeId],
    surge: int,
) -> Iterator[Place | Wake]:
    """As many as may run beside the others, and load at once."""
    running = len(fleet.current) + len(fleet.old) + fleet.stopping
    more = fleet.wanted + surge - running
    for _ in range(min(more, max(surge, 1) - _loading(fleet), fleet.wanted - len(fleet.current))):
        if not (found := capacity.one_more(deployment, avoid)):
            return
        yield found


def _loading(fleet: Fleet) -> int:
    return sum(r.id not in fleet.served for r in fleet.current)


def _lacks(fleet: Fleet) -> bool:
    """Whether one more is to be made, and none is on its way."""
    return len(fleet.current) < fleet.wanted and not _loading(fleet)


def _useless(fleet: Fleet, *, new_ones_work: bool) -> Iterator[Replica]:
    """Outgoing replicas that serve nobody and that nobody has to wait for."""
    excess = len(fleet.old) - fleet.wanted
    for replica in fleet.old:
        if replica.id in fleet.served:
            continue
        never_served = replica.state in (ReplicaState.FAILED, ReplicaState.PENDING)
        if never_served or new_ones_work or excess > 0:
            excess -= 1
            yield replica


def _free_capacity(
    deployment: Deployment, fleet: Fleet, capacity: Capacity, spare: int
) -> Iterator[Drain]:
    """Takes one down before one is put up: there is no other way on nodes that are full. `spare`:
    as many that serve may go for the sake of another revision."""
    if len(fleet.current) + len(fleet.old) < fleet.wanted and capacity.has_unheld(deployment):
        return  # one was taken down already: its device is free, the memory on it is not yet
    for victim in sorted(fleet.old, key=lambda r: (r.id in fleet.served, r.assigned_at)):
        if victim.id in fleet.updated & fleet.served and spare < 1:
            continue
        beside = [d for r in fleet.old if r.node == victim.node for d in r.devices]
        if capacity.find(deployment) or capacity.would_fit(deployment, victim.node, beside):
            reason = fleet.reasons[victim.id]
            yield Drain(victim.id, f"{reason}; no other accelerator is free for its successor")
            return


def _head_reaches_others(view: ClusterView) -> bool:
    """Whether it is not the head that is cut off."""
    return any(r.evidence is Evidence.ANSWERS for r in view.replicas.values())
