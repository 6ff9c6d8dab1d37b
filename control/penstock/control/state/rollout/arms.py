"""A deployment's replicas, apart while a canary judges its newest revision. Pure.

While one is judged, all that the deployment is to have run what served before it, and beside them,
beyond `max_surge`, as many of the new revision as its canary's step takes. Neither makes room for
the other: an old one leaves only once the canary has let the new revision on, and where
accelerators do not suffice, it is the canary that waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType

from penstock.control.state.canary.canary import CanaryState
from penstock.control.state.canary.replicas import judged_revision
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import LIVE
from penstock.control.state.rollout.actions import Decision, GiveUp, LetOn, Place
from penstock.control.state.rollout.deployment import Deployment, alone
from penstock.control.state.rollout.revision import Cause


@dataclass(frozen=True, slots=True)
class Arm:
    """Replicas of a deployment that are all to be made of one revision."""

    view: ClusterView  # without the other replicas of it
    deployment: Deployment  # whose target is that revision
    wanted: int  # replicas
    digest: str = ""  # of the template that is judged; empty: it is not that arm

    def made(self, decision: Decision) -> Decision:
        """As it is for the deployment as a whole."""
        if self.digest and isinstance(decision, Place):
            return replace(decision, digest=self.digest)
        return decision


def arms(view: ClusterView, deployment: Deployment) -> Iterator[Arm]:
    """One, or while a revision is judged, what it is judged against and then that revision: what
    serves has room first."""
    judged = judged_revision(view, deployment)
    if judged is None:
        yield Arm(view, deployment, deployment.spec.replicas)
        return
    digest, stable = judged.digest, alone(deployment, deployment.target)
    yield Arm(_with(view, deployment, digest, of_it=False), stable, deployment.spec.replicas)
    beside = _with(view, deployment, digest, of_it=True)
    wanted = judged.wanted
    if deployment.paused:
        wanted = min(wanted, sum(r.state in LIVE for r in beside.replicas_for(deployment)))
    yield Arm(beside, alone(deployment), wanted, digest)


def end_of_judging(view: ClusterView, deployment: Deployment) -> LetOn | GiveUp | None:
    """What becomes of a revision that no canary judges any more; None: one does, or none was to."""
    revision, name = deployment.judged, deployment.spec.name
    if revision is None:
        return None
    canary = view.canaries.of_revision(str(name), revision.number)
    if canary is None:
        return GiveUp(name, Cause("the canary that was to judge it is not there any more"))
    if canary.promoting or canary.state is CanaryState.PROMOTED:
        return LetOn(name)
    if canary.is_active:
        return None
    why = f": {canary.why}" if canary.why else ""
    return GiveUp(
        name, Cause(f"canary {canary.spec.name} is {canary.state.replace('_', ' ')}{why}")
    )


def _with(view: ClusterView, deployment: Deployment, digest: str, *, of_it: bool) -> ClusterView:
    """The view without the deployment's replicas of this template, or without its others."""
    left_out = {
        r.id for r in view.replicas_for(deployment) if (r.template_digest == digest) is not of_it
    }
    kept = {key: r for key, r in view.replicas.items() if key not in left_out}
    return replace(view, replicas=MappingProxyType(kept))
