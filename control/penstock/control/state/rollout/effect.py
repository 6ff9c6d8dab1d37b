"""What a change of a deployment will take, told before it is made. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.control.state.canary.replicas import judged_revision
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import LIVE
from penstock.control.state.rollout.capacity import Capacity, takes_more
from penstock.control.state.rollout.deployment import Deployment, alone
from penstock.control.state.rollout.status import needs, no_node


@dataclass(frozen=True, slots=True)
class Effect:
    """What becomes of replicas."""

    replaces: int = 0  # replicas whose place new ones take
    surge: int = 0  # that run beside those meanwhile, at a time
    starts: int = 0  # replicas that are made besides
    stops: int = 0  # that are no longer wanted
    fits: bool = True  # whether the nodes have room for all that is begun at once
    message: str = ""  # why not, and what comes of it


def effect_of(
    view: ClusterView, old: Deployment | None, new: Deployment, capacity: Capacity
) -> Effect:
    """What a deployment takes that becomes another one, or is made; `capacity`: what the nodes have
    left, which it takes its part of."""
    wanted, were = new.spec.replicas, old.spec.replicas if old else 0
    again = old is not None and old.revision.number != new.revision.number
    live = sum(r.state in LIVE for r in view.replicas_for(new)) if again else 0
    replaces = min(live, wanted)
    starts = max(wanted - were, 0)
    judged = judged_revision(view, new) if again else None
    surge = judged.wanted if judged else min(new.spec.rollout.update.max_surge, replaces)
    beside = alone(new) if judged else new
    message = _misfit(view, beside, capacity, starts, surge, is_judged=bool(judged))
    return Effect(replaces, surge, starts, max(were - wanted, 0), not message, message)


def _misfit(
    view: ClusterView,
    deployment: Deployment,
    capacity: Capacity,
    starts: int,
    surge: int,
    *,
    is_judged: bool,
) -> str:
    """Why what is begun at once finds no room; empty: it does."""
    if not starts + surge:
        return ""
    if not any(map(takes_more, view.nodes.values())):
        return no_node(view)
    for placed in range(starts + surge):
        found = capacity.find(deployment)
        if found is None:
            then = "its canary waits" if is_judged else _then(deployment, placed, starts)
            return f"{needs(view, deployment)}: {then}"
        capacity.take(*found)
    return ""


def _then(deployment: Deployment, placed: int, starts: int) -> str:
    if placed < starts:
        return f"{starts - placed} of {starts} wait for room"
    if deployment.spec.rollout.update.max_unavailable:
        return "one is taken down before its successor is made"
    return "the change waits; update.max_unavailable=1 lets one be taken down first"
