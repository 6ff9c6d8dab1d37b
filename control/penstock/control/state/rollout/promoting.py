"""What a canary's end changes of a deployment: its target gets the candidate's template, or the
revision that was judged fails. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import (
    DeploymentName,
    resumed,
)
from penstock.control.state.rollout.placing import specified, tried_anew, with_failure
from penstock.control.state.rollout.revision import Cause, Origin, RevisionState


def with_template_of(
    view: ClusterView, target: str, candidate: str, origin: Origin, now: datetime
) -> ClusterView:
    """The view in which the target's next revision has the template that the candidate serves;
    all its settings stay. Where it has that template it has no other revision, and one of it that
    had failed is tried once more. Raises `unknown-deployment` for either."""
    known, template = view.deployment(target), view.deployment(candidate).target.template
    if known.spec.template != template:
        return specified(view, known, replace(known.spec, template=template), now, origin)
    if known.revision.state is not RevisionState.FAILED:
        return view
    return tried_anew(view, replace(resumed(known, now), paused=known.paused))


def with_failed_revision(
    view: ClusterView, name: str, number: int, cause: str, now: datetime
) -> ClusterView:
    """The view in which a deployment's revision has failed for this cause, with all that follows
    (`after_failure`); the same one where it is not the one that is rolled out now."""
    known = view.deployments.get(DeploymentName(name))
    if known is None or known.revision.number != number or not known.revision.is_under_way:
        return view
    return with_failure(view, known, Cause(cause), now)
