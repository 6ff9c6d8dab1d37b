"""The verdict: what passes, what fails, and that little data never passes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.evals.adapter_regression.comparison import Comparison, compare
from penstock.evals.adapter_regression.thresholds import LIMITS, thresholds
from penstock.evals.adapter_regression.verdict import judge
from penstock.evals.comparison.gate import Bound, Result
from tests.evals.adapter_regression.examples import bad, good, greetings, none, paired, run_of

SLOW = settings(deadline=None, max_examples=25)
SPEECHES = {
    "w": (good, bad),
    "l": (bad, good),
    "t": (good, good),
    "e": (none, good),
    "b": (good, none),
}


def comparison(outcomes: str) -> Comparison:
    """One with these wins, losses, ties, errors of the candidate and of the baseline."""
    prompts = greetings(len(outcomes)).prompts
    pairs = []
    for number, (prompt, outcome) in enumerate(zip(prompts, outcomes, strict=True)):
        of, to = SPEECHES[outcome]
        pairs.append(paired(prompt, of(number), to(number)))
    return compare(pairs, 0.95, seed=1)


def test_a_candidate_that_is_as_good_everywhere_passes() -> None:
    verdict = judge(comparison("t" * 40), thresholds({}))
    assert verdict.result is Result.PASS
    assert len(verdict.reasons) == len(verdict.findings) == 3


def test_a_candidate_that_loses_half_fails_and_says_why() -> None:
    verdict = judge(comparison("tl" * 20), thresholds({}))
    assert verdict.result is Result.FAIL
    assert any("50% of 40" in reason and "at most 20%" in reason for reason in verdict.reasons)


def test_one_threshold_that_is_missed_fails_all() -> None:
    verdict = judge(
        comparison("w" * 40), thresholds({"min_contains_rate": 1.0, "max_error_rate": 0})
    )
    assert verdict.result is Result.INCONCLUSIVE
    verdict = judge(comparison("w" * 39 + "e"), thresholds({"max_error_rate": 0}))
    assert verdict.result is Result.FAIL
    assert verdict.reasons == (
        "Share of requests without an answer: 2.5% of 40; it has to be at most 0%.",
    )


def test_few_losses_among_few_prompts_tell_nothing() -> None:
    verdict = judge(comparison("t" * 19 + "l" * 3), thresholds({}))
    assert verdict.result is Result.INCONCLUSIVE
    assert "more prompts" in verdict.reasons[0]


def test_a_baseline_that_mostly_fails_is_nothing_to_be_compared_with() -> None:
    verdict = judge(comparison("w" * 40 + "b" * 10), thresholds({}))
    assert verdict.result is Result.INCONCLUSIVE
    assert "The baseline gave no answer to 20%" in verdict.reasons[0]


def test_a_figure_that_nothing_measured_does_not_pass() -> None:
    verdict = judge(comparison("t" * 40), thresholds({"min_win_rate": 0.0}))
    assert verdict.result is Result.INCONCLUSIVE
    assert "nothing measured it" in verdict.reasons[0]


@SLOW
@given(st.text("wltb", min_size=1, max_size=19))
def test_too_few_prompts_never_pass(outcomes: str) -> None:
    lenient = {"max_loss_rate": 1, "min_score_diff": -1, "max_error_rate": 1}
    assert judge(comparison(outcomes), thresholds(lenient)).result is not Result.PASS


@SLOW
@given(st.text("wlteb", min_size=20, max_size=60))
def test_what_passes_meets_every_limit_with_its_whole_interval(outcomes: str) -> None:
    verdict = judge(comparison(outcomes), thresholds({"max_latency_ratio": 2}))
    bounds = {limit.key: limit.bound for limit in LIMITS}
    for finding in verdict.findings:
        if finding.result is Result.PASS:
            assert finding.found is not None
            if bounds[finding.key] is Bound.MOST:
                assert finding.found.high <= finding.limit
            else:
                assert finding.found.low >= finding.limit
    assert (verdict.result is Result.PASS) <= all(
        finding.result is Result.PASS for finding in verdict.findings
    )
    assert verdict.reasons


@SLOW
@given(st.text("wlt", min_size=20, max_size=50))
def test_one_more_loss_never_turns_a_verdict_into_a_pass(outcomes: str) -> None:
    limits = thresholds({"min_score_diff": -1})
    order = [Result.FAIL, Result.INCONCLUSIVE, Result.PASS]
    before = judge(comparison(outcomes), limits).result
    worse = outcomes.replace("w", "l", 1) if "w" in outcomes else outcomes.replace("t", "l", 1)
    after = judge(comparison(worse), limits).result
    assert order.index(after) <= order.index(before)


def test_a_default_is_told_from_what_was_declared() -> None:
    verdict = run_of(greetings(40), good, good, {"max_loss_rate": 0.15}).verdict
    assert {each.key: each.declared for each in verdict.findings} == {
        "max_loss_rate": True,
        "min_score_diff": False,
        "max_error_rate": False,
    }
