"""When a replica that leaves hands its running streams over to others. Pure.

Until its time is up they run where they are, as most end by themselves; from then on gateways move
each one to a replica that can go on with it. What cannot move has as long as ever. Whoever leaves
at short notice hands over at once: what says so for a machine is its node's `hand_over`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import NodeIntent, Replica, ReplicaState
from penstock.control.state.rollout.deployment import Deployment, DeploymentName

MOVING = timedelta(seconds=5)
"""What streams get to begin elsewhere, beside their wait for a place."""


def with_hand_over(view: ClusterView, now: datetime, drain: timedelta) -> ClusterView:
    """The view in which every replica that drains has its moment. It is moved only where an
    operator has no more time: each move is news for every gateway. `drain`: what running calls get
    where they are."""
    for replica in view.replicas.values():
        at = hand_over_at(view, replica, now, drain)
        if at != replica.hand_over_at:
            view = view.with_replica(replace(replica, hand_over_at=at))
    return view


def hand_over_at(
    view: ClusterView, replica: Replica, now: datetime, drain: timedelta
) -> datetime | None:
    """From when on its streams are to go on at others; None: they end where they are."""
    if replica.state is not ReplicaState.DRAINING:
        return None
    owner, known = view.owner(replica), replica.hand_over_at
    if owner is None or not _resumes(owner, replica):
        return known
    due = now if leaves_at_once(view, owner, replica) else replica.since + drain
    return min(known, due) if known else due


def leaves_at_once(view: ClusterView, owner: Deployment, replica: Replica) -> bool:
    """Whether nobody waits for its streams to end by themselves."""
    node = view.nodes.get(replica.node)
    goes = node is not None and (node.hand_over or node.intent is NodeIntent.LEAVING)
    return goes or owner.hand_over


def drain_left(view: ClusterView, replica: Replica, now: datetime, drain: timedelta) -> timedelta:
    """What its running calls get from now on, until they are cut off: those that are to move also
    what moving takes."""
    owner = view.owner(replica)
    if replica.hand_over_at is None or owner is None:
        return drain
    moving = MOVING + timedelta(milliseconds=owner.spec.limits.resume_wait_ms)
    # However the clock was set since the moment was fixed.
    return max(drain, min(replica.hand_over_at - now, drain) + moving)


def asked_at_once(view: ClusterView, name: str) -> ClusterView:
    """The view in which replicas of a deployment that leave hand over at once, until it is changed
    again; the same view where they do."""
    known = view.deployment(DeploymentName(name))
    if known.hand_over:
        return view
    return view.with_deployment(replace(known, hand_over=True))


def _resumes(owner: Deployment, replica: Replica) -> bool:
    made_of = owner.revision_of(replica.template_digest, replica.generation) or owner.target
    return bool(owner.spec.limits.resume) and not made_of.template.is_managed
