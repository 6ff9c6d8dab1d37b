"""A figure held to a limit: pass, fail, or not enough to say. Pure.

A limit is held by the end of a figure's interval that is nearer to it: what passes is met with the
declared confidence, what fails is missed with it, and what lies between is inconclusive. So too few
prompts, whose intervals are wide, never pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from penstock.evals.comparison.figures import as_written, between
from penstock.evals.comparison.intervals import Interval, plain


class Bound(StrEnum):
    """Which side of its limit a figure has to be on."""

    LEAST = "least"
    MOST = "most"


class Result(StrEnum):
    """What a run, or one threshold of it, comes to."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


EXIT_CODES: Final = {Result.PASS: 0, Result.FAIL: 3, Result.INCONCLUSIVE: 4}
"""1 is a run that could not be made, 2 a command line that is wrong."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One figure that can be held to a limit."""

    key: str
    words: str  # what the figure is, in a sentence: "share of prompts lost"
    bound: Bound
    within: tuple[float, float]  # what a limit may be
    check: str = ""  # the kind of check that measures it; empty: every dataset does
    certain: bool = True  # held by the end of its interval, not by what was measured
    unit: str = "share"


@dataclass(frozen=True, slots=True)
class Finding:
    """How one threshold came out."""

    key: str
    words: str
    result: Result
    reason: str  # a sentence
    bound: Bound
    limit: float
    unit: str
    found: Interval | None
    declared: bool  # no default
    certain: bool  # held by the interval's end, not by what was measured

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "key": self.key,
            "limit": self.limit,
            "bound": str(self.bound),
            "declared": self.declared,
            "found": plain(self.found),
            "result": str(self.result),
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """How all came out."""

    result: Result
    findings: tuple[Finding, ...]
    reasons: tuple[str, ...]  # sentences, the decisive ones alone

    def as_dict(self) -> Mapping[str, Any]:
        """For JSON."""
        return {
            "result": str(self.result),
            "reasons": list(self.reasons),
            "thresholds": [each.as_dict() for each in self.findings],
        }


def together(findings: Sequence[Finding], doubts: Sequence[str]) -> Verdict:
    """One threshold that fails fails all; all have to pass for a pass, and nothing may be in the
    way of it: `doubts` say why nothing can pass, whatever the figures are."""
    missed = [each.reason for each in findings if each.result is Result.FAIL]
    unsure = [each.reason for each in findings if each.result is Result.INCONCLUSIVE]
    if missed:
        return Verdict(Result.FAIL, tuple(findings), tuple(missed))
    if doubts or unsure:
        return Verdict(Result.INCONCLUSIVE, tuple(findings), (*doubts, *unsure))
    return Verdict(Result.PASS, tuple(findings), tuple(each.reason for each in findings))


def finding(limit: Limit, found: Interval | None, bar: float, *, declared: bool) -> Finding:
    """How the figure came out, held to `bar`; None where nothing measured it."""
    if found is not None and not limit.certain:  # not asked of all prompts of the kind: no width
        found = Interval(found.value, found.value, found.value, found.count)
    result = Result.INCONCLUSIVE if found is None else _result(limit, found, bar)
    return Finding(
        key=limit.key,
        words=limit.words,
        result=result,
        reason=_reason(limit, found, bar, result),
        bound=limit.bound,
        limit=bar,
        unit=limit.unit,
        found=found,
        declared=declared,
        certain=limit.certain,
    )


def too_few(compared: int, least: int) -> list[str]:
    """The doubt where fewer prompts than `least` could be compared."""
    if compared >= least:
        return []
    return [
        f"Only {compared} prompts could be compared, and a verdict needs {least}: add prompts to "
        "the dataset."
    ]


def silent_baseline(errors: Interval | None, most: float) -> list[str]:
    """The doubt where what is compared with gave no answer to more than `most` of the prompts."""
    if errors is None or errors.value <= most:
        return []
    return [
        f"The baseline gave no answer to {errors.value:.0%} of the prompts, more than {most:.0%}: "
        "there is too little to compare with."
    ]


def _result(limit: Limit, found: Interval, bar: float) -> Result:
    if limit.bound is Bound.MOST:
        met, missed = found.high <= bar, found.low > bar
    else:
        met, missed = found.low >= bar, found.high < bar
    if met:
        return Result.PASS
    return Result.FAIL if missed else Result.INCONCLUSIVE


def _reason(limit: Limit, found: Interval | None, bar: float, result: Result) -> str:
    words = limit.words[0].upper() + limit.words[1:]
    if found is None:
        return f"{words}: nothing measured it, so whether it is {_side(limit, bar)} is unknown."
    measured = f"{words}: {as_written(found.value, limit.unit)} of {found.count}"
    if limit.unit != "share":
        measured = f"{words}: {as_written(found.value, limit.unit)} over {found.count}"
    if limit.certain:
        measured += f", {between(found, limit.unit)} for all prompts of the kind"
    told = {
        Result.PASS: f"as it has to be, {_side(limit, bar)}",
        Result.FAIL: f"it has to be {_side(limit, bar)}",
        Result.INCONCLUSIVE: f"more prompts have to say whether it is {_side(limit, bar)}",
    }[result]
    return f"{measured}; {told}."


def _side(limit: Limit, bar: float) -> str:
    return f"at {limit.bound} {as_written(bar, limit.unit)}"
