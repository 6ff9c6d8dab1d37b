"""Shadows to documents and back."""

from __future__ import annotations

from datetime import datetime

from penstock.control.state.shadow.shadows import Shadow
from penstock.control.state.shadow.spec import (
    Record,
    Sample,
    ShadowSpec,
    Until,
    parsed_candidate,
    parsed_primary,
)
from penstock.control.store.store import Document


def from_shadow(shadow: Shadow) -> Document:
    """A shadow's document."""
    spec = shadow.spec
    return {
        "name": spec.name,
        "primary": str(spec.primary),
        "candidate": str(spec.candidate),
        "share_permille": spec.share_permille,
        "sample": spec.sample.value,
        "tenants": list(spec.tenants),
        "endpoints": list(spec.endpoints),
        "max_concurrent": spec.max_concurrent,
        "max_per_minute": spec.max_per_minute,
        "until_pairs": spec.until.pairs,
        "until_at": spec.until.at and spec.until.at.isoformat(),
        "checks": list(spec.checks),
        "margins": dict(spec.margins),
        "guardrails": dict(spec.guardrails),
        "self_permille": spec.self_permille,
        "usd_per_day": spec.usd_per_day,
        "record": spec.record.value,
        **dict(spec.asked),
        "uid": shadow.uid,
        "seed": shadow.seed,
        "created_at": shadow.created_at.isoformat(),
        "paused": shadow.paused,
        "ended": shadow.ended,
    }


def to_shadow(document: Document) -> Shadow:
    """The inverse of `from_shadow`."""
    at = document["until_at"]
    spec = ShadowSpec(
        name=document["name"],
        primary=parsed_primary(document["primary"]),
        candidate=parsed_candidate(document["candidate"]),
        share_permille=document["share_permille"],
        sample=Sample(document["sample"]),
        tenants=tuple(document["tenants"]),
        endpoints=tuple(document["endpoints"]),
        max_concurrent=document["max_concurrent"],
        max_per_minute=document["max_per_minute"],
        until=Until(document["until_pairs"], datetime.fromisoformat(at) if at else None),
        checks=tuple(document["checks"]),
        margins=tuple(sorted(document["margins"].items())),
        guardrails=tuple(sorted(document.get("guardrails", {}).items())),
        self_permille=document["self_permille"],
        usd_per_day=document["usd_per_day"],
        record=Record(document.get("record", "none")),  # older heads wrote none
        embedder=document.get("embedder", ""),
        judge=document.get("judge", ""),
    )
    return Shadow(
        spec,
        uid=document["uid"],
        seed=document["seed"],
        created_at=datetime.fromisoformat(document["created_at"]),
        paused=document["paused"],
        ended=document["ended"],
    )
