"""What agents report, and what the mere passing of time means, folded into the view.

Two witnesses, one verdict: the agent says what its processes do, the head's pings (`pings.py`) say
whether a replica can be reached. Silence of an agent alone takes nothing out of the routes: the
data plane outlives the control plane. Only an agent's silence *and* a replica that does not answer
make it lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from penstock.control.errors import Code, NotFound
from penstock.control.state.cluster import ClusterView, Gateway, GatewayState
from penstock.control.state.fleet.liveness import Liveness, process_of
from penstock.control.state.fleet.replica import (
    Evidence,
    Node,
    NodeFacts,
    NodeId,
    NodeIntent,
    NodeState,
    Replica,
    ReplicaState,
    ReplicaStatus,
    Resources,
)
from penstock.control.state.fleet.serving import is_current
from penstock.control.state.rollout.placing import replica_of

# A heartbeat may have been written just before its agent obeyed a start: one miss proves nothing.
UNREPORTED_IS_GONE = 2
# Ready for so long, a replica's former crashes are forgiven.
STABLE_AFTER = timedelta(minutes=2)
# A report that its agent wrote before it obeyed an order to wake it may come later than its answer.
ASLEEP_IS_STALE = timedelta(seconds=5)
# Memory that other processes use of a device matters in steps of this; less wakes nobody.
DEVICE_MEMORY_STEP = 1 << 28


@dataclass(frozen=True, slots=True)
class Patience:
    """How long silence is borne."""

    silent_after: timedelta
    lost_after: timedelta
    forget_after: timedelta
    handing_over: timedelta = timedelta(seconds=60)  # in place of lost_after, where announced


def registered(
    view: ClusterView,
    live: Liveness,
    facts: NodeFacts,
    reports: Iterable[ReplicaStatus],
    now: datetime,
) -> ClusterView:
    """An agent announced itself, with everything that runs on its node."""
    facts = replace(facts, resources=_lasting(facts.resources))
    node = view.nodes.get(facts.id) or Node(facts, NodeState.READY, since=now)
    node = replace(node.moved(NodeState.READY, now), facts=facts, intent=NodeIntent.SERVING)
    return _fold_reports(view.with_node(node), live, node, reports, now)


def observed(
    view: ClusterView,
    live: Liveness,
    node_id: NodeId,
    resources: Resources,
    reports: Iterable[ReplicaStatus],
    now: datetime,
    *,
    intent: NodeIntent = NodeIntent.SERVING,
    instance: str = "",
) -> ClusterView:
    """A heartbeat. Raises `unknown-node` where the agent has to register (again) first."""
    node = view.nodes.get(node_id)
    if node is None or node_id not in live.nodes or node.facts.instance != instance:
        raise NotFound(
            f"node {node_id!r} has not registered with this head: register first", Code.UNKNOWN_NODE
        )
    facts = replace(node.facts, resources=_lasting(resources))
    node = replace(node.moved(NodeState.READY, now), facts=facts, intent=intent)
    return _fold_reports(view.with_node(node), live, node, reports, now)


def swept(view: ClusterView, live: Liveness, now: datetime, patience: Patience) -> ClusterView:
    """What the mere passing of time changes: silent and lost nodes and gateways, lost and forgotten
    replicas."""
    for node in view.nodes.values():
        view = view.with_node(_aged(node, live, now, patience))
    for replica in view.replicas.values():
        view = _sweep_replica(view, live, replica, now, patience)
    used = {replica.node for replica in view.replicas.values()}
    for node in view.nodes.values():
        silence = now - live.node_observed_at(node.id, node.since)
        lost = node.state is NodeState.LOST and silence > patience.forget_after
        if lost and node.id not in used and not node.draining:
            view = view.without_node(node.id)
    for gateway in view.gateways.values():
        view = _sweep_gateway(view, live, gateway, now, patience)
    return view


def vouched_for(view: ClusterView, replica: Replica) -> bool:
    """Whether an agent that is heard says that the replica is ready."""
    node = view.nodes.get(replica.node)
    return (
        node is not None
        and node.state is NodeState.READY
        and replica.status.state is ReplicaState.READY
    )


def _lasting(resources: Resources) -> Resources:
    """What placement asks of a machine, without what changes from second to second."""
    devices = tuple(
        replace(d, memory_used_bytes=-(-d.memory_used_bytes // DEVICE_MEMORY_STEP))
        for d in resources.devices
    )
    devices = tuple(
        replace(d, memory_used_bytes=d.memory_used_bytes * DEVICE_MEMORY_STEP) for d in devices
    )
    return replace(resources, memory_available_bytes=0, devices=devices)


def _aged(node: Node, live: Liveness, now: datetime, patience: Patience) -> Node:
    silence = now - live.node_observed_at(node.id, node.since)
    lost_after = patience.lost_after
    if node.intent is NodeIntent.HANDING_OVER:
        lost_after = max(lost_after, patience.handing_over)
    if node.state in (NodeState.READY, NodeState.EXPECTED) and silence > patience.silent_after:
        node = node.moved(NodeState.SILENT, now)
    if node.state is NodeState.SILENT and silence > lost_after:
        node = node.moved(NodeState.LOST, now)
    return node


def _sweep_replica(
    view: ClusterView, live: Liveness, replica: Replica, now: datetime, patience: Patience
) -> ClusterView:
    if replica.state is ReplicaState.LOST:
        forgotten = now - replica.since > patience.forget_after
        return view.without_replica(replica.id) if forgotten else view
    stable = replica.state is ReplicaState.READY and now - replica.since >= STABLE_AFTER
    if stable and (replica.crashes or replica.tries):
        view = _without_tries(view, replica)
        replica = replace(replica, crashes=0, tries=0)
        view = view.with_replica(replica)
    node = view.nodes.get(replica.node)
    node_lost = node is None or node.state is NodeState.LOST
    if node_lost and not _answers(live, replica):
        why = f"its node {replica.node} is lost"
        return view.with_replica(replace(replica.moved(ReplicaState.LOST, now), leaving=why))
    return view


def _without_tries(view: ClusterView, replica: Replica) -> ClusterView:
    """One that was placed after attempts in vain, and stays ready, ends their row: what was in the
    way is no more, though others may yet be missing."""
    deployment = view.owner(replica)
    came_after = replica.tries and deployment is not None and is_current(deployment, replica)
    if deployment is None or not came_after or not deployment.tries:
        return view
    return view.with_deployment(replace(deployment, tries=0))


def _answers(live: Liveness, replica: Replica) -> bool:
    """One that is wedged answers pings, until it does not."""
    if replica.evidence is Evidence.WEDGED:
        return not live.in_doubt(replica)
    return replica.evidence is Evidence.ANSWERS


def _sweep_gateway(
    view: ClusterView, live: Liveness, gateway: Gateway, now: datetime, patience: Patience
) -> ClusterView:
    silence = now - live.gateways.get(gateway.id, now - patience.forget_after)
    gateway = replace(gateway, reporting=silence <= patience.silent_after)
    if gateway.state in (GatewayState.REMOTE, GatewayState.SILENT):
        if silence > patience.forget_after:
            return view.without_gateway(gateway.id)
        state = GatewayState.REMOTE if gateway.reporting else GatewayState.SILENT
        gateway = replace(gateway, state=state)
    return view.with_gateway(gateway)


def _fold_reports(
    view: ClusterView,
    live: Liveness,
    node: Node,
    reports: Iterable[ReplicaStatus],
    now: datetime,
) -> ClusterView:
    reported = {status.replica_id: status for status in reports}
    for status in reported.values():
        view = _fold_report(view, node, status, now)
    for replica in view.replicas.values():
        if replica.node == node.id and replica.id not in reported:
            view = _fold_absence(view, live, node, replica, now)
    return view


def _fold_report(
    view: ClusterView, node: Node, status: ReplicaStatus, now: datetime
) -> ClusterView:
    replica = view.replicas.get(status.replica_id)
    if status.state is ReplicaState.STOPPED:
        return view.without_replica(status.replica_id)
    if replica is None:  # of a former head, or not ours at all: its uid says which
        replica = replica_of(status, node.id, now)
        replica = replace(replica, state=status.state_if_unasked)
    if (status.address, status.pid) != process_of(replica):
        replica = replica.judged(Evidence.NONE, now)
    elif replica.evidence is Evidence.GONE and status.state is ReplicaState.READY:
        replica = replica.judged(Evidence.DOUBTED, now)  # its agent speaks for it
    new_crashes = max(status.restarts - replica.status.restarts, 0)
    replica = replica.moved(_reported(replica, status, now), now)
    draining = replica.state is ReplicaState.DRAINING
    if replica.state is ReplicaState.ASLEEP:  # nobody asks it whether it is there
        replica = replica.judged(Evidence.NONE, now)
    replica = replace(
        replica,
        node=node.id,
        instance=node.facts.instance,
        status=status,
        unreported=0,
        crashes=replica.crashes + new_crashes,
        devices=replica.devices or status.devices,
        leaving=replica.leaving if draining else "",
        to_sleep=replica.to_sleep and draining,
        stop_accepted=replica.stop_accepted and draining,
    )
    return _with_load_time(view.with_replica(replica), replica)


def _reported(replica: Replica, status: ReplicaStatus, now: datetime) -> ReplicaState:
    """The state that a report makes of it. What this head decided stands until it is obeyed."""
    asleep = status.state is ReplicaState.ASLEEP
    match replica.state:
        case ReplicaState.DRAINING:
            return ReplicaState.ASLEEP if asleep and replica.to_sleep else replica.state
        case ReplicaState.ASLEEP if status.state is ReplicaState.DRAINING:
            return replica.state  # written before it slept
        case ReplicaState.PENDING if asleep:
            return replica.state
        case ReplicaState.STARTING if asleep and now - replica.since < ASLEEP_IS_STALE:
            return replica.state
        case _:
            return status.state_if_unasked


def _with_load_time(view: ClusterView, replica: Replica) -> ClusterView:
    """The deployment learns how long its replicas load; a tenth more or less is no news."""
    deployment, status = view.owner(replica), replica.status
    took = status.ready_at_ms - status.started_at_ms
    if deployment is None or status.state is not ReplicaState.READY or took <= 0 or status.wakes:
        return view
    if not status.started_at_ms or abs(took - deployment.load_ms) * 10 <= deployment.load_ms:
        return view
    if replica.template_digest != deployment.template_digest:
        return view
    return view.with_deployment(replace(deployment, load_ms=took))


def _fold_absence(
    view: ClusterView, live: Liveness, node: Node, replica: Replica, now: datetime
) -> ClusterView:
    if replica.state in (ReplicaState.PENDING, ReplicaState.LOST):
        return view
    # An agent knows nothing of what another one started: that serves on while it answers.
    not_its_own = replica.instance not in ("", node.facts.instance)
    if not_its_own and replica.state is not ReplicaState.DRAINING and _answers(live, replica):
        return view
    unreported = replica.unreported + 1
    if unreported < UNREPORTED_IS_GONE:
        return view.with_replica(replace(replica, unreported=unreported))
    if replica.state in (ReplicaState.DRAINING, ReplicaState.ASLEEP):
        return view.without_replica(replica.id)
    why = f"the agent of {replica.node} does not know it"
    return view.with_replica(replace(replica.moved(ReplicaState.LOST, now), leaving=why))
