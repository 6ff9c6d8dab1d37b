"""Canaries of a deployment's new revisions, which its setting `update.canary` names. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime

from penstock.control.errors import InvalidSpec
from penstock.control.state.canary.canary import Canaries, Canary, CanaryState, ended
from penstock.control.state.canary.spec import CanarySpec, Target
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import Deployment, DeploymentSpec
from penstock.control.state.rollout.placing import with_all_draining
from penstock.control.state.rollout.revision import judged, last_served


def begun(view: ClusterView, before: Deployment, now: datetime) -> ClusterView:
    """The view after an operator's change of a deployment: where that made a revision which is to
    be judged, it is judged from now on, and the canary of the one that it replaces is over.
    `before`: the deployment as it was. Raises InvalidSpec where the canary is of something else.
    """
    known = view.deployments[before.spec.name]
    view = with_one_replaced(view, before, now)
    if not _is_to_be_judged(before, known):
        return view
    plan = _plan(view.canaries, known, now)
    view = view.with_deployment(replace(known, revisions=judged(known.revisions)))
    running = _run(plan, known, now)
    return replace(view, canaries=view.canaries.having(running))


def with_one_replaced(view: ClusterView, before: Deployment, now: datetime) -> ClusterView:
    """The view after an operator's change of a deployment: where another revision has taken the
    place of one that was judged, its canary is over, and its replicas take nothing new."""
    was, known = before.revision, view.deployments[before.spec.name]
    if known.revision.number == was.number:
        return view
    why = f"revision {known.revision.number} has taken the place of revision {was.number}"
    if canary := view.canaries.judging(str(before.spec.name), was.number):
        over = ended(canary, CanaryState.ABORTED, why, now)
        view = replace(view, canaries=view.canaries.having(over))
    digest = was.template_digest
    if was.is_judged and digest not in (known.template_digest, known.target.template_digest):
        view = with_all_draining(view, known, digest, why, now)
    return view


def check_plan(view: ClusterView, spec: DeploymentSpec) -> None:
    """Raises InvalidSpec where `update.canary` names a canary of something else."""
    name = spec.rollout.update.canary
    found = view.canaries.named.get(name)
    if found and (found.target != Target(spec.name) or found.spec.candidate):
        of = f"{found.target} and {found.spec.candidate or 'its new revisions'}"
        raise InvalidSpec(
            f"update.canary is {name!r}: that canary is of {of}; name another one, or one that"
            " there is not yet"
        )


def _is_to_be_judged(before: Deployment, known: Deployment) -> bool:
    """Not the first revision, nor a restart of what serves: there is nothing to hold it against."""
    revision, served = known.revision, last_served(known.revisions)
    if not known.spec.rollout.update.canary or served is None or not revision.is_rolling_out:
        return False
    is_new = revision.number != before.revision.number or not before.revision.is_under_way
    return is_new and revision.template_digest != served.template_digest


def _plan(canaries: Canaries, known: Deployment, now: datetime) -> Canary:
    """The canary that the deployment names; made with the usual steps and guards where there is
    none."""
    name, revision = known.spec.rollout.update.canary, known.revision
    if found := canaries.named.get(name):
        return found
    spec = CanarySpec(name, Target(known.spec.name), "")
    return canaries.with_new(Canary(spec, "", now, revision.by)).named[name]


def _run(plan: Canary, known: Deployment, now: datetime) -> Canary:
    """The plan's next run."""
    revision, served = known.revision, last_served(known.revisions)
    said = f"{known.uid} {revision.number} {now.isoformat()}"
    return Canary(
        plan.spec,
        hashlib.sha256(said.encode()).hexdigest()[:32],
        now,
        revision.by,
        revision.reason,
        stable=f"revision {served.number}" if served else "",
        candidate=f"revision {revision.number}",
        revision=revision.number,
        candidate_digest=revision.template_digest,
    )
