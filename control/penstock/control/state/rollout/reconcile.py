"""Desired and actual state to a list of actions. Pure, and safe to repeat at any moment.

Level-triggered: the plan follows from the view alone, so a head that died between two steps goes
on where the view says it stands. A replica's life in actions: Place (the view gets a pending
replica), Start (its agent is asked, until it confirms), Drain (the view says so, routes follow),
Stop (its agent is asked, until it obeys).

`decisions` change the view, under its lock and in one transaction; `calls` follow from the view
that they made. How replicas take each other's place is told in `replacing.py`, and what is apart
while a canary judges a revision in `arms.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from penstock.control.state.cluster import ClusterView, Gateway, GatewayState
from penstock.control.state.fleet.replica import (
    LIVE,
    NodeId,
    NodeIntent,
    NodeState,
    Replica,
    ReplicaState,
)
from penstock.control.state.fleet.serving import SOUND, is_current, proven, serving
from penstock.control.state.rollout.actions import (
    Abandon,
    Action,
    Call,
    Confirm,
    Decision,
    Drain,
    GiveUp,
    Settle,
    Start,
    Stop,
)
from penstock.control.state.rollout.arms import Arm, arms, end_of_judging
from penstock.control.state.rollout.capacity import Capacity, takes_more
from penstock.control.state.rollout.deployment import Deployment
from penstock.control.state.rollout.failing import CRASH_LOOP, cause_of_failure
from penstock.control.state.rollout.replacing import Deadlines, Fleet, outgoing, replacements

# Of one deployment: each keeps a process, and at level 1 its weights, in its machine's memory.
MOST_SLEEPERS = 4


def plan(view: ClusterView, now: datetime, deadlines: Deadlines) -> list[Action]:
    """What to do next; empty once everything is as desired, or while this head holds still."""
    return [*decisions(view, now, deadlines), *calls(view, now, deadlines)]


def decisions(view: ClusterView, now: datetime, deadlines: Deadlines) -> list[Decision]:
    """What is to change in the view."""
    if view.held:
        return []
    found: list[Decision] = []
    capacity = Capacity(view)
    for _, deployment in sorted(view.deployments.items()):
        if _is_as_desired(view, deployment):
            continue
        if cause := cause_of_failure(view, deployment, now, deadlines.ready):
            found.append(GiveUp(deployment.spec.name, cause))
            continue
        if end := end_of_judging(view, deployment):
            found.append(end)
            continue
        found += _confirmed(view, deployment, capacity, now)
        found += _towards_spec(view, deployment, capacity, now, deadlines)
    return [*found, *_abandoned(view), *_out_of_bed(view)]


def calls(view: ClusterView, now: datetime, deadlines: Deadlines) -> list[Call]:
    """What agents are to be asked, again and again until they obey."""
    if view.held:
        return []
    found: list[Call] = []
    for _, replica in sorted(view.replicas.items()):
        if replica.state not in (ReplicaState.PENDING, ReplicaState.DRAINING):
            continue
        if not _node_ready(view, replica):
            continue
        if replica.state is ReplicaState.PENDING and _may_start(view, replica):
            found.append(Start(replica.id))
        elif replica.state is ReplicaState.DRAINING and _may_stop(view, replica, now, deadlines):
            found.append(Stop(replica.id))
    return found


def _is_as_desired(view: ClusterView, deployment: Deployment) -> bool:
    """Whether there is nothing to decide, as with nearly all of a large fleet."""
    replicas = [r for r in view.replicas_for(deployment) if r.state is not ReplicaState.ASLEEP]
    if _is_unsettled(deployment) or len(replicas) != deployment.spec.replicas:
        return False
    return all(
        r.state is ReplicaState.READY
        and r.evidence in SOUND
        and r.status.address
        and is_current(deployment, r)
        and (node := view.nodes.get(r.node))
        and takes_more(node)
        for r in replicas
    )


def _towards_spec(
    view: ClusterView,
    deployment: Deployment,
    capacity: Capacity,
    now: datetime,
    deadlines: Deadlines,
) -> Iterator[Decision]:
    complete = True
    for arm in arms(view, deployment):
        yield from _given_up(arm.view, arm.deployment, capacity, now, deadlines)
        fleet = _fleet(arm, now, deadlines)
        yield from map(arm.made, _converge(arm, fleet, capacity, now, deadlines))
        complete &= not fleet.old and len(fleet.current) == fleet.wanted == len(fleet.served)
    if deployment.trouble and complete:
        yield Settle(deployment.spec.name)


def _converge(
    arm: Arm, fleet: Fleet, capacity: Capacity, now: datetime, deadlines: Deadlines
) -> Iterator[Decision]:
    view, deployment, wanted = arm.view, arm.deployment, arm.wanted
    stopped = deployment.paused and deployment.target is not deployment.revision
    surge = deployment.spec.rollout.update.max_surge if stopped and wanted else 0
    yield from _drain_surplus(fleet, capacity, surge, _beds(view, deployment))
    avoid = _troubled_nodes(view, deployment)
    if fleet.old:
        yield from replacements(deployment, fleet, capacity, avoid, now, deadlines)
        return
    for _ in range(wanted - len(fleet.current)):
        if not (found := capacity.one_more(deployment, avoid)):
            if sleeper := capacity.in_the_way(deployment, now - deadlines.leave_grace):
                yield Drain(sleeper.id, "asleep, and memory that it keeps is needed")
            break
        yield found


def _fleet(arm: Arm, now: datetime, deadlines: Deadlines) -> Fleet:
    view, deployment = arm.view, arm.deployment
    live = [r for r in view.replicas_for(deployment) if r.state in LIVE]
    reasons = {r.id: outgoing(view, deployment, r, now, deadlines) for r in live}
    return Fleet(
        wanted=arm.wanted,
        current=[r for r in live if not reasons[r.id]],
        old=[r for r in live if reasons[r.id]],
        reasons=reasons,
        served=frozenset(r.id for r in serving(view, deployment)),
        updated=frozenset(r.id for r in live if not is_current(deployment, r)),
        stopping=sum(
            1
            for r in view.replicas_for(deployment)
            if r.state is ReplicaState.DRAINING
            and _node_ready(view, r)
            and now - r.since < deadlines.stopped
        ),
    )


def _is_unsettled(deployment: Deployment) -> bool:
    """Whether there is something to note once all its replicas are ready, or more than these."""
    return bool(deployment.trouble or deployment.judged or _is_to_confirm(deployment))


def _is_to_confirm(deployment: Deployment) -> bool:
    rolling = deployment.revision.is_rolling_out and not deployment.paused
    return bool(rolling and deployment.spec.replicas)


def _confirmed(
    view: ClusterView, deployment: Deployment, capacity: Capacity, now: datetime
) -> Iterator[Confirm]:
    """A revision has served once all live replicas are of it, have been ready for a while, and are
    as many as are wanted or have room."""
    live = [r for r in view.replicas_for(deployment) if r.state in LIVE]
    min_ready = timedelta(milliseconds=deployment.spec.rollout.update.min_ready_ms)
    if not live or not _is_to_confirm(deployment):
        return
    if any(not is_current(deployment, r) or not proven(r, now, min_ready) for r in live):
        return
    if len(live) >= deployment.spec.replicas or capacity.find(deployment) is None:
        yield Confirm(deployment.spec.name)


def _drain_surplus(fleet: Fleet, capacity: Capacity, surge: int, beds: int) -> Iterator[Drain]:
    """Those that do not serve go first, then those on the fullest nodes, then the youngest.
    `surge`: how many may be there beyond what is wanted, of a rollout that is paused; `beds`: how
    many of those that serve may sleep in place of ending."""
    surplus = len(fleet.current) - fleet.wanted - surge
    order = sorted(fleet.current, key=lambda r: r.assigned_at, reverse=True)
    order.sort(key=lambda r: (r.id in fleet.served, -capacity.load(r.node)))
    for replica in order[: max(surplus, 0)]:
        to_sleep = replica.id in fleet.served and beds > 0
        beds -= to_sleep
        yield Drain(replica.id, "more than wanted", to_sleep=to_sleep)


def _given_up(
    view: ClusterView,
    deployment: Deployment,
    capacity: Capacity,
    now: datetime,
    deadlines: Deadlines,
) -> Iterator[Drain | Abandon]:
    """Attempts that came to nothing make room for the next, and leave their reason behind."""
    limit = max(deadlines.ready, timedelta(milliseconds=deployment.spec.start_limit_ms) * 1.5)
    avoid = _troubled_nodes(view, deployment)
    for replica in view.replicas_for(deployment):
        if _drains_unasked(replica) and now - replica.since >= deadlines.unasked:
            why = f"{replica.id} drains, though this head did not ask for it"
            why += f": {replica.status.last_error}" if replica.status.last_error else ""
            yield Drain(replica.id, "drains unasked", trouble=why)
            continue
        if not is_current(deployment, replica):
            continue
        lasted, error = now - replica.since, replica.status.last_error or "no reason given"
        patience = deadlines.retry(replica.tries)
        # Each node has its turn soon, then one now and again.
        once_more = patience if replica.tries >= len(view.nodes) else timedelta(0)
        if _never_obeyed(view, replica, now, deadlines) and lasted >= once_more:
            seconds = deadlines.obeyed.total_seconds()
            yield Abandon(replica.id, f"{replica.node} did not start {replica.id} in {seconds:g} s")
        elif replica.state is ReplicaState.FAILED and lasted >= patience:
            why = f"{replica.id} failed: {error}"
            yield Drain(replica.id, "failed, tried anew", trouble=why)
        elif replica.state is ReplicaState.STARTING and lasted >= max(limit, once_more):
            why = f"{replica.id} was not ready after {lasted.total_seconds():.0f} s"
            yield Drain(replica.id, "not ready in time, tried anew", trouble=why)
        elif replica.state is ReplicaState.BACKOFF and replica.crashes >= CRASH_LOOP:
            other = capacity.find(deployment, avoid)
            due = now - replica.assigned_at >= once_more
            if due and other and other[0] not in avoid:
                why = f"{replica.id} ended {replica.crashes} times on {replica.node}: {error}"
                yield Drain(replica.id, "crash loop, tried on another node", trouble=why)


def _troubled_nodes(view: ClusterView, deployment: Deployment) -> frozenset[NodeId]:
    """Nodes on which this template did not get on, as far as it can still be seen."""
    return frozenset(
        r.node
        for r in view.replicas_for(deployment)
        if r.template_digest == deployment.target.template_digest
        and (
            r.crashes >= CRASH_LOOP
            or r.status.state is ReplicaState.FAILED
            or (r.state is ReplicaState.LOST and r.status.state is ReplicaState.PENDING)
        )
    )


def _never_obeyed(view: ClusterView, replica: Replica, now: datetime, deadlines: Deadlines) -> bool:
    """Whether an agent that is heard all the while did not start what it was given."""
    node = view.nodes.get(replica.node)
    if replica.state is not ReplicaState.PENDING or not node or node.state is not NodeState.READY:
        return False
    return now - max(replica.since, node.since) >= deadlines.obeyed


def _drains_unasked(replica: Replica) -> bool:
    """Whether it takes no requests, without this head having asked for it."""
    said = replica.status.state is ReplicaState.DRAINING
    return said and replica.state is ReplicaState.STARTING


def _beds(view: ClusterView, deployment: Deployment) -> int:
    """How many replicas more may go to sleep."""
    if not deployment.target.template.sleep.level:
        return 0
    asleep = (r.state is ReplicaState.ASLEEP or r.to_sleep for r in view.replicas_for(deployment))
    return max(MOST_SLEEPERS - sum(asleep), 0)


def _out_of_bed(view: ClusterView) -> Iterator[Drain]:
    """Replicas that sleep, and will never be woken."""
    for _, replica in sorted(view.replicas.items()):
        owner, node = view.owner(replica), view.nodes.get(replica.node)
        departed = view.departed.get(replica.deployment_uid)
        if replica.state is not ReplicaState.ASLEEP:
            continue
        if owner is None and departed and departed.collected:
            yield Drain(replica.id, "its deployment is deleted")
        elif owner is not None and not is_current(owner, replica):
            yield Drain(replica.id, "asleep, and of an older template")
        elif node and (node.draining or node.intent is NodeIntent.LEAVING):
            yield Drain(replica.id, f"asleep, and its node {node.id} is to be empty")


def _abandoned(view: ClusterView) -> Iterator[Drain]:
    """Replicas of deleted deployments; those of deployments that we never knew are left alone."""
    for _, replica in sorted(view.replicas.items()):
        if replica.state not in LIVE or view.owner(replica) is not None:
            continue
        departed = view.departed.get(replica.deployment_uid)
        if departed and departed.collected:
            yield Drain(replica.id, "its deployment is deleted")


def _may_start(view: ClusterView, replica: Replica) -> bool:
    deployment = view.owner(replica)
    return deployment is not None and is_current(deployment, replica)


def _may_stop(view: ClusterView, replica: Replica, now: datetime, deadlines: Deadlines) -> bool:
    """Once every gateway that reports routes without it, or did not say so for too long."""
    obeyed = replica.stop_accepted and replica.status.state is ReplicaState.DRAINING
    if obeyed or replica.id in view.published.ready:
        return False
    first_without = view.published.left.get(replica.id)
    if first_without is None:
        return False
    succeeded_at = view.published.succeeded_at
    if succeeded_at and now - succeeded_at < deadlines.leave_grace:
        return False  # gateways of other machines may not have come back to this head yet
    if now - replica.since >= deadlines.leave_grace:
        return True
    return all(
        g.report.snapshot_version >= first_without if g.reporting and g.report else not _serves(g)
        for g in view.gateways.values()
    )


def _serves(gateway: Gateway) -> bool:
    """Whether it may route by what another head told it: a head that was just started has adopted
    it, and has not heard it yet."""
    return gateway.state in (GatewayState.READY, GatewayState.UNRESPONSIVE)


def _node_ready(view: ClusterView, replica: Replica) -> bool:
    node = view.nodes.get(replica.node)
    return node is not None and node.state is NodeState.READY
