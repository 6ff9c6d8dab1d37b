"""A canary's record: what is kept as evidence with what it promoted. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.control.declared.codec import Codec
from penstock.control.state.canary.canary import Canary, CanaryState
from penstock.control.state.canary.counts import Counts
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import DeploymentName
from penstock.control.state.rollout.kept_evidence import BY_CANARY, TemplateEvidence

KIND = BY_CANARY
"""Of the evidence."""

_CANARIES, _COUNTS = Codec(Canary), Codec(Counts)


def unrecorded(view: ClusterView) -> tuple[Canary, ...]:
    """Those that have found something of a template, and have not kept it as evidence yet. One
    that was promoted before it had passed its steps, or was aborted, has found nothing."""
    return tuple(
        canary
        for canary in view.canaries.named.values()
        if _has_found(canary) and not canary.evidence and _template(view, canary)
    )


def recorded(view: ClusterView, canary: Canary, own: str, report: str) -> ClusterView:
    """The view with what it found, under this id; the same one where it is kept already."""
    name, digest = canary.target.deployment, _template(view, canary)
    known = view.canaries.named.get(canary.spec.name)
    if known != canary or not digest or canary.ended_at is None:
        return view
    passed, at = canary.state is CanaryState.PROMOTED, canary.ended_at
    told = TemplateEvidence(own, digest, name, canary.revision, KIND, passed, at, report)
    canaries = view.canaries.having(replace(canary, evidence=own))
    return replace(view, canaries=canaries, evidence=view.evidence.having(told))


def _has_found(canary: Canary) -> bool:
    if canary.target.alias:
        return False
    whole = len(canary.passed) == len(canary.spec.steps)
    return canary.state is CanaryState.ROLLED_BACK or (
        canary.state is CanaryState.PROMOTED and whole
    )


def _template(view: ClusterView, canary: Canary) -> str:
    """The digest of what it judged; empty: it is not known any more."""
    if canary.candidate_digest:
        return canary.candidate_digest
    candidate = view.deployments.get(DeploymentName(canary.candidate))
    return candidate.target.template_digest if candidate else ""


def record_of(canary: Canary, counts: Counts, shadow: Any) -> dict[str, Any]:
    """How it went, what its last step counted, and the report of the shadow that it names; none:
    it names none, or nobody can tell."""
    return {
        "canary": _CANARIES.document(canary),
        "counts": _COUNTS.document(counts),
        "shadow": shadow,
    }
