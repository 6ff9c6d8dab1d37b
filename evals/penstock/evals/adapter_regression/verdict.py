"""Pass, fail, or not enough to say: each threshold's finding, and all of them together. Pure."""

from __future__ import annotations

from penstock.evals.adapter_regression.comparison import Comparison
from penstock.evals.adapter_regression.thresholds import LIMITS, Thresholds
from penstock.evals.comparison.gate import (
    Limit,
    Verdict,
    finding,
    silent_baseline,
    together,
    too_few,
)
from penstock.evals.comparison.intervals import Interval


def judge(comparison: Comparison, thresholds: Thresholds) -> Verdict:
    """The verdict: one threshold that fails fails all; all have to pass for a pass."""
    findings = [
        finding(
            limit,
            _found(limit, comparison),
            thresholds.limits[limit.key],
            declared=limit.key in thresholds.declared,
        )
        for limit in LIMITS
        if limit.key in thresholds.limits
    ]
    doubts = too_few(comparison.compared, thresholds.min_prompts)
    errors = comparison.baseline.errors
    return together(
        findings, [*doubts, *silent_baseline(errors, thresholds.max_baseline_error_rate)]
    )


def _found(limit: Limit, comparison: Comparison) -> Interval | None:
    """The figure in a comparison; None where nothing measured it."""
    named = {
        "max_loss_rate": comparison.loss_share,
        "min_win_rate": comparison.win_share,
        "min_score_diff": comparison.difference,
        "min_score": comparison.candidate.score,
        "min_similarity": comparison.candidate.similarity,
        "max_refusal_rate": comparison.candidate.refusals,
        "max_error_rate": comparison.candidate.errors,
        "max_latency_ratio": comparison.latency_ratio,
    }
    return comparison.candidate.checks.get(limit.check) if limit.check else named[limit.key]
