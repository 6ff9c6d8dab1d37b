"""Whether a version may be promoted: by what the policy asks for, and what stands of evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from penstock.adapters.adapter import AdapterRef, BaseModelFamily
from penstock.adapters.version import AdapterVersion, Digest, VersionState

PROMOTED: Final = (VersionState.CANARY, VersionState.LIVE)
"""What a version can be promoted to."""


class NotPromoted(ValueError):
    """A promotion that the policy refuses; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an evaluation found of a version, as far as a promotion asks for it."""

    of: Digest  # the bytes that were tried, so that it cannot be another's
    family: BaseModelFamily  # the models that they were tried on
    kind: str  # "adapter-regression"
    passed: bool  # the verdict, by the thresholds that the evaluation declared
    at: datetime
    against: AdapterRef | None = None
    dataset: str = ""  # SHA-256 of it

    def __post_init__(self) -> None:
        """Refuses a time without its zone, which could not be compared with others."""
        if self.at.tzinfo is None:
            raise ValueError(f"evidence of {self.at.isoformat()} names no time zone")


@dataclass(frozen=True, slots=True)
class PromotionPolicy:
    """What has to stand before a version gets to a state."""

    evidence_for: frozenset[VersionState] = field(default_factory=frozenset)
    kind: str = "adapter-regression"
    not_older_than: timedelta | None = None  # none: as old as it may be


def promote(
    version: AdapterVersion,
    to: VersionState,
    policy: PromotionPolicy,
    evidence: Iterable[Evidence],
    now: datetime,
) -> AdapterVersion:
    """The version in state `to`. Raises `NotPromoted`, and `BadMove` where that is no step.

    The newest evidence of the kind counts alone: one that failed is not outvoted by an older one.
    What is dated after `now` counts for nothing.
    """
    if to not in PROMOTED:
        raise NotPromoted(f"{version.ref} cannot be promoted to {to}: {' or '.join(PROMOTED)}")
    promoted = version.moved_to(to)
    if to in policy.evidence_for:
        _check(version, to, policy, evidence, now)
    return promoted


def _check(
    version: AdapterVersion,
    to: VersionState,
    policy: PromotionPolicy,
    evidence: Iterable[Evidence],
    now: datetime,
) -> None:
    who = f"{version.ref} cannot become {to}"
    tried = (version.manifest.digest, version.manifest.family, policy.kind)
    fitting = [e for e in evidence if (e.of, e.family, e.kind) == tried and e.at <= now]
    if not fitting:
        raise NotPromoted(f"{who}: it has no evidence of kind {policy.kind}")
    newest = max(fitting, key=lambda e: (e.at, not e.passed))
    if not newest.passed:
        raise NotPromoted(f"{who}: its newest {policy.kind}, of {newest.at:%Y-%m-%d}, failed")
    if policy.not_older_than is not None and now - newest.at > policy.not_older_than:
        raise NotPromoted(
            f"{who}: its newest {policy.kind} is of {newest.at:%Y-%m-%d}, older than "
            f"{policy.not_older_than}"
        )
