"""What agents report and what the head's pings find, folded into the view.

Two witnesses, one verdict. The agent says what its processes do; a ping says whether a replica can
be reached. Silence of an agent alone takes nothing out of the routes: the data plane outlives the
control plane. Only an agent's silence *and* a replica that does not answer make it lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto

from penstock.control.errors import UnknownNode
from penstock.control.state.cluster import ClusterView
from penstock.control.state.placing import replica_of
from penstock.control.state.replica import (
    Evidence,
    Node,
    NodeFacts,
    NodeId,
    NodeState,
    Replica,
    ReplicaId,
    ReplicaState,
    ReplicaStatus,
    Resources,
)

# A heartbeat may have been written just before its agent obeyed a start: one miss proves nothing.
UNREPORTED_IS_GONE = 2
REFUSALS_ARE_GONE = 2
TIMEOUTS_ARE_DOUBT = 3


class Ping(Enum):
    """What one Health call to a replica came to."""

    ANSWERED = auto()
    REFUSED = auto()  # nothing listens there
    TIMED_OUT = auto()


@dataclass(frozen=True, slots=True)
class Patience:
    """How long silence is borne."""

    silent_after: timedelta
    lost_after: timedelta
    forget_after: timedelta


def registered(
    view: ClusterView, facts: NodeFacts, reports: Iterable[ReplicaStatus], now: datetime
) -> ClusterView:
    """An agent announced itself, with everything that runs on its node."""
    known = view.nodes.get(facts.id)
    node = known or Node(facts, NodeState.READY, since=now, heard_at=now)
    node = replace(node.moved(NodeState.READY, now), facts=facts, heard_at=now)
    return _fold_reports(view.with_node(node), facts.id, reports, now)


def heard(
    view: ClusterView,
    node_id: NodeId,
    resources: Resources,
    reports: Iterable[ReplicaStatus],
    now: datetime,
) -> ClusterView:
    """A heartbeat. Raises UnknownNode where the agent has to register (again) first."""
    node = view.nodes.get(node_id)
    if node is None or node.state is NodeState.EXPECTED:
        raise UnknownNode(f"node {node_id!r} has not registered with this head: register first")
    facts = replace(node.facts, resources=resources)
    node = replace(node.moved(NodeState.READY, now), facts=facts, heard_at=now)
    return _fold_reports(view.with_node(node), node_id, reports, now)


def pinged(
    view: ClusterView, replica_id: ReplicaId, address: str, ping: Ping, now: datetime
) -> ClusterView:
    """A ping to a replica at this address ended; stale ones, of a former process, are ignored."""
    replica = view.replicas.get(replica_id)
    if replica is None or replica.status.address != address:
        return view
    return view.with_replica(_with_ping(replica, ping))


def swept(view: ClusterView, now: datetime, patience: Patience) -> ClusterView:
    """What the mere passing of time changes: silent and lost nodes, lost and forgotten replicas."""
    for node in view.nodes.values():
        view = view.with_node(_aged(node, now, patience))
    for replica in view.replicas.values():
        view = _sweep_replica(view, replica, now, patience)
    used = {replica.node for replica in view.replicas.values()}
    for node in view.nodes.values():
        gone_for = now - node.heard_at
        if (
            node.state is NodeState.LOST
            and gone_for > patience.forget_after
            and node.id not in used
        ):
            view = view.without_node(node.id)
    return view


def _with_ping(replica: Replica, ping: Ping) -> Replica:
    if ping is Ping.ANSWERED:
        return replace(replica, evidence=Evidence.ANSWERS, failed_pings=0)
    failed = replica.failed_pings + 1
    evidence = replica.evidence
    never_answered = evidence is Evidence.NONE
    if ping is Ping.REFUSED and (never_answered or failed >= REFUSALS_ARE_GONE):
        evidence = Evidence.GONE
    elif ping is Ping.TIMED_OUT and failed >= TIMEOUTS_ARE_DOUBT:
        evidence = Evidence.DOUBTED
    return replace(replica, evidence=evidence, failed_pings=failed)


def _aged(node: Node, now: datetime, patience: Patience) -> Node:
    silence = now - node.heard_at
    if node.state in (NodeState.READY, NodeState.EXPECTED) and silence > patience.silent_after:
        node = node.moved(NodeState.SILENT, now)
    if node.state is NodeState.SILENT and silence > patience.lost_after:
        node = node.moved(NodeState.LOST, now)
    return node


def _sweep_replica(
    view: ClusterView, replica: Replica, now: datetime, patience: Patience
) -> ClusterView:
    if replica.state is ReplicaState.LOST:
        forgotten = now - replica.since > patience.forget_after
        return view.without_replica(replica.id) if forgotten else view
    node = view.nodes.get(replica.node)
    node_lost = node is None or node.state is NodeState.LOST
    if node_lost and replica.evidence is not Evidence.ANSWERS:
        return view.with_replica(replica.moved(ReplicaState.LOST, now))
    return view


def _fold_reports(
    view: ClusterView, node_id: NodeId, reports: Iterable[ReplicaStatus], now: datetime
) -> ClusterView:
    reported = {status.replica_id: status for status in reports}
    for status in reported.values():
        view = _fold_report(view, node_id, status, now)
    for replica in view.replicas.values():
        if replica.node == node_id and replica.id not in reported:
            view = _fold_absence(view, replica, now)
    return view


def _fold_report(
    view: ClusterView, node_id: NodeId, status: ReplicaStatus, now: datetime
) -> ClusterView:
    replica = view.replicas.get(status.replica_id)
    if status.state is ReplicaState.STOPPED:
        return view.without_replica(status.replica_id)
    if replica is None:  # of a former head whose store is gone: taken in, reconciled like any other
        replica = replica_of(status, node_id, now)
    draining = replica.state is ReplicaState.DRAINING
    state = ReplicaState.DRAINING if draining else status.state
    fresh_process = (status.address, status.pid) != (replica.status.address, replica.status.pid)
    if fresh_process:
        replica = replace(replica, evidence=Evidence.NONE, failed_pings=0)
    replica = replace(replica.moved(state, now), node=node_id, status=status, unreported=0)
    return view.with_replica(replica)


def _fold_absence(view: ClusterView, replica: Replica, now: datetime) -> ClusterView:
    if replica.state in (ReplicaState.PENDING, ReplicaState.LOST):
        return view
    unreported = replica.unreported + 1
    if unreported < UNREPORTED_IS_GONE:
        return view.with_replica(replace(replica, unreported=unreported))
    if replica.state is ReplicaState.DRAINING:
        return view.without_replica(replica.id)
    return view.with_replica(replica.moved(ReplicaState.LOST, now))
