"""How many replicas of its candidate a canary needs ready for its step, and what is in the way.
Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from penstock.control.state.canary.canary import Canary
from penstock.control.state.canary.spec import WHOLE
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import LIVE, ReplicaState
from penstock.control.state.rollout.capacity import Capacity, takes_more
from penstock.control.state.rollout.deployment import Deployment, DeploymentName, alone
from penstock.control.state.rollout.status import needs, no_node


@dataclass(frozen=True, slots=True)
class Judged:
    """A revision of which some replicas run beside all those of the one before."""

    digest: str
    wanted: int  # replicas


def judged_revision(view: ClusterView, deployment: Deployment) -> Judged | None:
    """What of the deployment is judged now, and how many replicas its canary's step takes; None:
    nothing is."""
    revision = deployment.judged
    name = str(deployment.spec.name)
    canary = view.canaries.judging(name, revision.number) if revision else None
    if revision is None or canary is None:
        return None
    return Judged(revision.template_digest, wanted(view, canary))


def wanted(view: ClusterView, canary: Canary) -> int:
    """Replicas of the candidate that are to be ready before the step's share goes there."""
    target = view.deployments.get(DeploymentName(canary.target.deployment))
    share = ceil(target.spec.replicas * canary.now.permille / WHOLE) if target else 0
    judged = target.judged if target and canary.candidate_digest else None
    is_managed = judged is not None and judged.template.is_managed  # where one takes all there is
    return min(share, 1) if is_managed else share


def missing(view: ClusterView, canary: Canary) -> str:
    """Why fewer replicas of a revision that is judged are ready than its step takes, once it is
    known that they are: a sentence for people."""
    deployment = view.deployments.get(DeploymentName(canary.target.deployment))
    judged = judged_revision(view, deployment) if deployment else None
    if deployment is None or judged is None:
        return f"{canary.candidate} of {canary.target} is not judged any more"
    number, name = deployment.revision.number, deployment.spec.name
    if not deployment.spec.replicas:
        return f"{name} is scaled to 0 replicas: give it one with `penstock scale`"
    if deployment.paused:
        return f"the rollout of {name} is paused: `penstock rollout resume {name}` goes on"
    live = [
        r
        for r in view.replicas_for(deployment)
        if r.state in LIVE and r.template_digest == judged.digest
    ]
    begun, more = alone(deployment), judged.wanted - len(live)
    if more > 0 and Capacity(view).find(begun) is None:
        there = any(map(takes_more, view.nodes.values()))
        why = needs(view, begun) if there else no_node(view)
        many = f"{more} more replica{'s' if more > 1 else ''}"
        return f"revision {number} needs {many} beside the others, and {why}"
    ready = sum(r.state is ReplicaState.READY for r in live)
    return f"{ready} of the {judged.wanted} replicas of revision {number} are ready, others load"
