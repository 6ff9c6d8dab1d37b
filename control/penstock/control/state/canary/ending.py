"""What a canary's way changes of deployments and aliases: an end takes the share away, and a
promotion gives the candidate the target's place. Pure.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from penstock.adapters.adapter import AdapterRef
from penstock.adapters.alias import Move, Target
from penstock.adapters.promotion import NotPromoted, promote
from penstock.adapters.version import BadMove, VersionState
from penstock.control.errors import Code, PenstockError
from penstock.control.state.adapters.registry import AdapterRegistry
from penstock.control.state.canary.canary import Canary, CanaryState, ended
from penstock.control.state.canary.record import has_passed, template_judged, with_finding
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import DeploymentName
from penstock.control.state.rollout.evidence import check_live
from penstock.control.state.rollout.promoting import with_failed_revision, with_template_of
from penstock.control.state.rollout.revision import Origin, RevisionState


def moved_on(view: ClusterView, after: Canary, now: datetime) -> ClusterView:
    """The view with a canary as it was decided, and what follows from that."""
    before = view.canaries.canary(after.spec.name)
    if after.ended_at and before.is_active:
        after = replace(after, judged_digest=template_judged(view, after))
    if after.state in (CanaryState.ROLLED_BACK, CanaryState.ABORTED) and before.is_active:
        view = _without_revision(view, before, after, now)
    elif after.promoting and not before.promoting:
        return promotion_begun(view, after, now)
    return replace(view, canaries=view.canaries.having(after))


def aborted(view: ClusterView, name: str, why: str, now: datetime) -> ClusterView:
    """The view in which nobody has the candidate. Raises `unknown-canary`; one that is not active
    is left as it is."""
    canary = view.canaries.canary(name)
    if not canary.is_active:
        return view
    return moved_on(view, ended(canary, CanaryState.ABORTED, why, now), now)


def check_not_served(view: ClusterView, canary: Canary) -> None:
    """Raises `conflict` where its promotion's revision serves everybody by now."""
    target = view.deployments.get(DeploymentName(canary.target.deployment))
    if target is None or not canary.promoting or target.revision.number != canary.revision:
        return
    if target.revision.state is RevisionState.SERVED:
        raise PenstockError(
            f"revision {canary.revision} of {canary.target} serves everybody by now:"
            f" `penstock rollout undo {canary.target}` goes back",
            Code.CONFLICT,
        )


def promotion_begun(view: ClusterView, canary: Canary, now: datetime) -> ClusterView:
    """The view in which a canary's candidate begins to take the target's place: a deployment rolls
    its template out; a revision goes on by itself, and an alias moves with its evidence."""
    if not (canary.target.alias or canary.candidate_digest):
        name = canary.target.deployment
        origin = Origin(_by(canary), f"promotes {canary.candidate}")
        view = with_template_of(view, name, canary.candidate, origin, now)
        canary = replace(canary, revision=view.deployment(name).revision.number)
    return replace(view, canaries=view.canaries.having(canary))


def check_promoted(view: ClusterView, canary: Canary, now: datetime) -> None:
    """Raises `no-evidence` where the policy asks for evidence before everybody has a deployment's
    or a revision's template, and the canary has not passed all its steps."""
    if canary.target.alias or len(canary.passed) == len(canary.spec.steps):
        return
    candidate = view.deployments.get(DeploymentName(canary.candidate))
    digest = canary.candidate_digest or (candidate.target.template_digest if candidate else "")
    check_live(view, canary.target.deployment, digest, now)


def alias_moved(
    view: ClusterView, canary: Canary, own: str, report: str, now: datetime
) -> ClusterView:
    """The view in which everybody of the alias has the candidate, as one move, and the canary is
    over: with what it found as evidence of this id, where it passed its steps, and the version live
    where the policy lets it be. Raises `unknown-alias` and `unknown-adapter`."""
    alias = view.adapters.alias(canary.target.deployment, canary.target.alias)
    ref = AdapterRef.parse(canary.candidate)
    move = Move(Target.of(ref), now, _by(canary))
    adapters, over = view.adapters.with_alias(alias.moved(move)), canary
    if has_passed(canary):
        adapters = with_finding(adapters, canary, own, report, now)
        over = replace(canary, evidence=own)
    why = f"{canary.target} is {ref}"
    return replace(
        view,
        adapters=_live(adapters, ref, now),
        canaries=view.canaries.having(ended(over, CanaryState.PROMOTED, why, now)),
    )


def _live(adapters: AdapterRegistry, ref: AdapterRef, now: datetime) -> AdapterRegistry:
    evidence = [each.evidence for each in adapters.evidence_of(ref)]
    version = adapters.version(str(ref))
    try:
        return adapters.with_version(
            promote(version, VersionState.LIVE, adapters.policy, evidence, now)
        )
    except (NotPromoted, BadMove):  # the policy asks for more, or it is live
        return adapters


def _without_revision(
    view: ClusterView, before: Canary, after: Canary, now: datetime
) -> ClusterView:
    """The revision that it judged, or that its promotion rolls out, has failed with it."""
    if not before.revision:
        return view
    how = "rolled back" if after.state is CanaryState.ROLLED_BACK else "aborted"
    cause = f"{_by(after)} {how}: {after.why}"
    return with_failed_revision(view, before.target.deployment, before.revision, cause, now)


def _by(canary: Canary) -> str:
    return f"canary {canary.spec.name}"
