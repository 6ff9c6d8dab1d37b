"""Pass, fail, or not enough to say: each threshold's finding, and all of them together. Pure.

A limit is held by the end of a figure's interval that is nearer to it: what passes is met with the
declared confidence, what fails is missed with it, and what lies between is inconclusive. So too few
prompts, whose intervals are wide, never pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from penstock.evals.adapter_regression.comparison import Comparison
from penstock.evals.adapter_regression.figures import as_written, between
from penstock.evals.adapter_regression.intervals import Interval
from penstock.evals.adapter_regression.thresholds import LIMITS, Bound, Limit, Thresholds


class Result(StrEnum):
    """What a run, or one threshold of it, comes to."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


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


@dataclass(frozen=True, slots=True)
class Verdict:
    """How all came out."""

    result: Result
    findings: tuple[Finding, ...]
    reasons: tuple[str, ...]  # sentences, the decisive ones alone


def judge(comparison: Comparison, thresholds: Thresholds) -> Verdict:
    """The verdict: one threshold that fails fails all; all have to pass for a pass."""
    findings = tuple(
        _finding(limit, comparison, thresholds)
        for limit in LIMITS
        if limit.key in thresholds.limits
    )
    doubts = _doubts(comparison, thresholds)
    missed = [each.reason for each in findings if each.result is Result.FAIL]
    unsure = [each.reason for each in findings if each.result is Result.INCONCLUSIVE]
    if missed:
        return Verdict(Result.FAIL, findings, tuple(missed))
    if doubts or unsure:
        return Verdict(Result.INCONCLUSIVE, findings, (*doubts, *unsure))
    return Verdict(Result.PASS, findings, tuple(each.reason for each in findings))


def _doubts(comparison: Comparison, thresholds: Thresholds) -> list[str]:
    """Why nothing can pass, whatever the figures are."""
    doubts = []
    if comparison.compared < thresholds.min_prompts:
        doubts.append(
            f"Only {comparison.compared} prompts could be compared, and a verdict needs "
            f"{thresholds.min_prompts}: add prompts to the dataset."
        )
    errors = comparison.baseline.errors
    if errors is not None and errors.value > thresholds.max_baseline_error_rate:
        doubts.append(
            f"The baseline gave no answer to {errors.value:.0%} of the prompts, more than "
            f"{thresholds.max_baseline_error_rate:.0%}: there is too little to compare with."
        )
    return doubts


def _finding(limit: Limit, comparison: Comparison, thresholds: Thresholds) -> Finding:
    found, bar = _found(limit, comparison), thresholds.limits[limit.key]
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
        declared=limit.key in thresholds.declared,
        certain=limit.certain,
    )


def _found(limit: Limit, comparison: Comparison) -> Interval | None:
    """The figure; what is not asked of all prompts of the kind has no width."""
    found = limit.find(comparison)
    if found is None or limit.certain:
        return found
    return Interval(found.value, found.value, found.value, found.count)


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


__all__ = ["Finding", "Result", "Verdict", "judge"]
