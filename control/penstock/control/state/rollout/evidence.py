"""What has to be found of a template before clients have it, as the policy asks. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from penstock.control.errors import Code, PenstockError
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import Deployment, DeploymentName
from penstock.control.state.rollout.kept_evidence import (
    BY_CANARY,
    DeploymentPolicy,
    KeptEvidence,
    Stage,
    TemplateEvidence,
)
from penstock.control.state.rollout.revision import RevisionState


def check_live(view: ClusterView, name: str, digest: str, now: datetime) -> None:
    """Raises `no-evidence` where the policy asks for evidence before all clients of a deployment
    have a template, and there is none that does."""
    _check(view.evidence, Stage.LIVE, f"{name} cannot go live with it", digest, now)


def check_share(view: ClusterView, name: str, digest: str, now: datetime) -> None:
    """Raises `no-evidence` likewise before a share of its clients have one. What a canary has found
    counts for nothing there: it had such a share."""
    what = f"{name} cannot share its clients with it"
    _check(view.evidence, Stage.CANARY, what, digest, now, lambda each: each.kind != BY_CANARY)


def check_change(view: ClusterView, before: Deployment, now: datetime) -> None:
    """The same for a deployment's new revision: where a canary judges it, for a share, and else for
    all clients. `before`: the deployment as it was. Its first revision is free, and so is one that
    has served it: that may always be gone back to."""
    known = view.deployments[before.spec.name]
    digest, name = known.template_digest, str(known.spec.name)
    served = {r.template_digest for r in before.revisions if r.state is RevisionState.SERVED}
    if not served or digest in served or known.revision.number == before.revision.number:
        return
    if known.judged:
        check_share(view, name, digest, now)
    else:
        check_live(view, name, digest, now)


def check_again(view: ClusterView, before: Deployment, now: datetime) -> None:
    """The same for a revision that failed and is tried once more, unless a canary judges it."""
    known = view.deployments[before.spec.name]
    failed = before.revision.state is RevisionState.FAILED
    if (
        failed
        and not known.judged
        and any(r.state is RevisionState.SERVED for r in before.revisions)
    ):
        check_live(view, str(known.spec.name), known.template_digest, now)


def check_shares(view: ClusterView, before: Deployment | None, name: str, now: datetime) -> None:
    """The same for deployments that its setting `canary` gives a share, and did not before. One
    that is new may have been given a share before it was there."""
    known = view.deployments[DeploymentName(name)]
    had = _shares(before) if before else set()
    for candidate in _shares(known) - had:
        if found := view.deployments.get(DeploymentName(candidate)):
            check_share(view, name, found.target.template_digest, now)
    for other in view.deployments.values() if before is None else ():
        if name in _shares(other):
            check_share(view, str(other.spec.name), known.template_digest, now)


def _shares(deployment: Deployment) -> set[str]:
    return {each.deployment for each in deployment.spec.sharing.canary if each.permille}


def _check(
    evidence: KeptEvidence,
    stage: Stage,
    what: str,
    digest: str,
    now: datetime,
    counts: Callable[[TemplateEvidence], bool] = lambda each: True,
) -> None:
    policy = evidence.policy
    if stage not in policy.evidence_for:
        return
    fitting = [
        each
        for each in evidence.of(digest)
        if each.at <= now and counts(each) and policy.kind in ("", each.kind)
    ]
    if why := next(_lacks(policy, fitting, now), ""):
        raise PenstockError(
            f"template {digest[:12]}: {what}: {why}; put evidence of a revision of it, or change"
            " the policy (`penstock rollout policy`)",
            Code.NO_EVIDENCE,
        )


def _lacks(
    policy: DeploymentPolicy, newest_first: list[TemplateEvidence], now: datetime
) -> Iterator[str]:
    """Of each kind the newest counts alone: one that failed is not outvoted by an older one."""
    newest: dict[str, TemplateEvidence] = {}
    for each in newest_first:
        newest.setdefault(each.kind, each)
    if not newest:
        yield f"it has no evidence{f' of kind {policy.kind}' if policy.kind else ''}"
    for kind, each in sorted(newest.items()):
        if not each.passed:
            yield f"its newest {kind}, of {each.at:%Y-%m-%d}, failed"
    most = policy.not_older_than_hours
    if most and all(now - each.at > timedelta(hours=most) for each in newest.values()):
        yield f"its evidence is older than {most} hours"
