"""A promotion asks for the evidence that its policy names, of these very bytes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.adapters.adapter import BaseModelFamily
from penstock.adapters.promotion import Evidence, NotPromoted, PromotionPolicy, promote
from penstock.adapters.version import BadMove, Digest, VersionState
from tests.adapters.examples import MINI, NOW, version

LIVE = VersionState.LIVE
CANDIDATE = version("pirate@1")
STRICT = PromotionPolicy(frozenset({LIVE}), not_older_than=timedelta(days=7))


def evidence(*, passed: bool = True, days_ago: int = 0, **fields: object) -> Evidence:
    values = {
        "of": CANDIDATE.manifest.digest,
        "family": MINI,
        "kind": "adapter-regression",
        "passed": passed,
        "at": NOW - timedelta(days=days_ago),
    }
    return Evidence(**(values | fields))  # type: ignore[arg-type]


def test_without_a_policy_no_evidence_is_asked_for() -> None:
    assert promote(CANDIDATE, LIVE, PromotionPolicy(), [], NOW).state == LIVE


def test_a_state_that_the_policy_does_not_name_asks_for_none() -> None:
    assert promote(CANDIDATE, VersionState.CANARY, STRICT, [], NOW).state == VersionState.CANARY


def test_evidence_that_passed_promotes() -> None:
    assert promote(CANDIDATE, LIVE, STRICT, [evidence()], NOW).state == LIVE


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ([], "no evidence of kind adapter-regression"),
        ([evidence(passed=False)], "failed"),
        ([evidence(days_ago=2), evidence(passed=False, days_ago=1)], "failed"),
        ([evidence(days_ago=8)], "older than 7 days"),
        ([evidence(of=Digest("f" * 64))], "no evidence"),
        ([evidence(kind="smoke")], "no evidence"),
        ([evidence(family=BaseModelFamily("maxi"))], "no evidence"),
        ([evidence(days_ago=-1)], "no evidence"),
        ([evidence(), evidence(passed=False)], "failed"),
    ],
)
def test_what_is_missing_of_the_evidence_is_said(found: list[Evidence], why: str) -> None:
    with pytest.raises(NotPromoted, match=f"pirate@1 cannot become live.*{why}"):
        promote(CANDIDATE, LIVE, STRICT, found, NOW)


def test_no_evidence_makes_a_step_that_is_none() -> None:
    with pytest.raises(BadMove):
        promote(version("pirate@1", state=VersionState.RETIRED), LIVE, STRICT, [evidence()], NOW)


@pytest.mark.parametrize("to", [VersionState.RETIRED, VersionState.CANDIDATE])
def test_nothing_is_promoted_to_where_no_promotion_leads(to: VersionState) -> None:
    with pytest.raises(NotPromoted, match="canary or live"):
        promote(CANDIDATE, to, PromotionPolicy(), [], NOW)


def test_evidence_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        evidence(at=NOW.replace(tzinfo=None))
