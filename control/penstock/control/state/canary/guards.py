"""What the counts of a canary's two arms say: guard by guard, at any moment. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from penstock.control.state.canary.canary import Edge
from penstock.control.state.canary.counts import Counts
from penstock.control.state.canary.spec import CanarySpec

GUARDS = (
    *("errors", "finish", "ttft_p50", "ttft_p90", "between_tokens_p50", "between_tokens_p90"),
    *("total_p50", "total_p90"),
)


class Verdict(StrEnum):
    """What the evidence of one guard comes to."""

    BETTER = "better"
    EQUAL = "equal"
    WORSE = "worse"  # rolls back
    UNDECIDED = "undecided"  # holds


@dataclass(frozen=True, slots=True)
class Finding:
    """One guard, with the figures that its verdict was made from."""

    guard: str
    verdict: Verdict
    stable: float  # share of the arm's sessions
    candidate: float
    stable_sessions: int  # that the share is of
    candidate_sessions: int
    evidence: float  # against "not worse": natural logarithm; it rolls back from `limit` on
    limit: float
    missing: str = ""  # what an undecided one lacks, as people read it


def edges_of(known: tuple[Edge, ...], counts: Counts) -> tuple[Edge, ...]:
    """The edges of a step, with those that can be fixed by now."""
    raise NotImplementedError


def findings(
    spec: CanarySpec, step: int, counts: Counts, edges: tuple[Edge, ...]
) -> tuple[Finding, ...]:
    """What each guard says of a step (from 1) that counted so much."""
    raise NotImplementedError
