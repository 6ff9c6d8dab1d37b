"""What a canary has found of its candidate, as evidence that is kept with it. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from penstock.adapters.adapter import AdapterRef
from penstock.adapters.promotion import Evidence
from penstock.control.state.adapters.registry import AdapterRegistry, StoredEvidence
from penstock.control.state.canary.canary import Canary, CanaryState
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import DeploymentName
from penstock.control.state.rollout.kept_evidence import BY_CANARY, TemplateEvidence


def unrecorded(view: ClusterView) -> tuple[Canary, ...]:
    """Those that have ended with a finding, and have not kept it as evidence yet. One that was
    promoted before it had passed its steps, or was aborted, has found nothing; an alias moves with
    its evidence."""
    return tuple(each for each in view.canaries.named.values() if _is_unrecorded(view, each))


def recorded(view: ClusterView, canary: Canary, own: str, report: str) -> ClusterView:
    """The view with what it found, under this id; the same one where it is kept already."""
    known = view.canaries.named.get(canary.spec.name)
    if known != canary or canary.ended_at is None or not _is_unrecorded(view, canary):
        return view
    view = replace(view, canaries=view.canaries.having(replace(canary, evidence=own)))
    if canary.target.alias:
        return replace(view, adapters=with_finding(view.adapters, canary, own, report))
    passed, at = canary.state is CanaryState.PROMOTED, canary.ended_at
    digest, name = canary.judged_digest, canary.target.deployment
    told = TemplateEvidence(own, digest, name, canary.revision, BY_CANARY, passed, at, report)
    return replace(view, evidence=view.evidence.having(told))


def with_finding(
    adapters: AdapterRegistry, canary: Canary, own: str, report: str, now: datetime | None = None
) -> AdapterRegistry:
    """The registry with what was found of a version; `now`: it passes at this moment. Raises
    `unknown-adapter`."""
    ref, stable = AdapterRef.parse(canary.candidate), AdapterRef.parse(canary.stable)
    manifest, at = adapters.version(canary.candidate).manifest, now or canary.ended_at
    if at is None:
        return adapters
    of, family = manifest.digest, manifest.family
    found = Evidence(of, family, BY_CANARY, passed=now is not None, at=at, against=stable)
    return adapters.with_evidence(StoredEvidence(own, ref, found, report))


def has_passed(canary: Canary) -> bool:
    """Whether it went through all of its steps."""
    return len(canary.passed) == len(canary.spec.steps)


def _is_unrecorded(view: ClusterView, canary: Canary) -> bool:
    if canary.evidence:
        return False
    back = canary.state is CanaryState.ROLLED_BACK
    if canary.target.alias:
        return back and canary.candidate in view.adapters.names()
    on = canary.state is CanaryState.PROMOTED and has_passed(canary)
    return (back or on) and bool(canary.judged_digest)


def template_judged(view: ClusterView, canary: Canary) -> str:
    """The digest of what it judges; empty: an adapter, or it is not known any more."""
    if canary.candidate_digest:
        return canary.candidate_digest
    candidate = view.deployments.get(DeploymentName(canary.candidate))
    return candidate.target.template_digest if candidate else ""
