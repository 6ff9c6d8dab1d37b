"""Win, loss, tie: prompt by prompt, errors included."""

from __future__ import annotations

import pytest

from penstock.evals.adapter_regression.comparison import Outcome, compare
from penstock.evals.adapter_regression.scores import Answer
from tests.evals.adapter_regression.examples import bad, dataset, good, greetings, none, paired

(PROMPT,) = greetings(1).prompts


@pytest.mark.parametrize(
    ("candidate", "baseline", "outcome"),
    [
        (good, bad, Outcome.WIN),
        (bad, good, Outcome.LOSS),
        (good, good, Outcome.TIE),
        (bad, bad, Outcome.TIE),
        (none, good, Outcome.LOSS),
        (none, bad, Outcome.LOSS),
        (good, none, Outcome.NOT_COMPARED),
        (none, none, Outcome.NOT_COMPARED),
    ],
)
def test_who_wins(candidate: object, baseline: object, outcome: Outcome) -> None:
    assert callable(candidate)
    assert callable(baseline)
    assert paired(PROMPT, candidate(0), baseline(0)).outcome is outcome


def test_scores_within_the_margin_are_a_tie() -> None:
    (prompt,) = dataset({"prompt": "?", "reference": "a b c d e f g h i j"}).prompts
    of, to = Answer("a b c d e f g h i j"), Answer("a b c d e f g h i k")
    assert paired(prompt, of, to, 0.1).outcome is Outcome.TIE
    assert paired(prompt, of, to, 0.05).outcome is Outcome.WIN


def test_a_score_is_the_mean_of_a_prompts_checks() -> None:
    checks = {"contains": "Arr!", "length": {"max_words": 1}}
    (prompt,) = dataset({"prompt": "?", "checks": checks}).prompts
    assert paired(prompt, Answer("Arr! Ahoy"), Answer("Hi")).candidate.score == 0.5


def test_errors_count_on_their_side_and_none_is_dropped() -> None:
    prompts = greetings(4).prompts
    answers = [(good, good), (none, good), (good, none), (none, none)]
    pairs = [
        paired(prompt, of(n), to(n))
        for n, (prompt, (of, to)) in enumerate(zip(prompts, answers, strict=True))
    ]
    found = compare(pairs, 0.95, seed=1)
    assert (found.wins, found.losses, found.ties, found.compared) == (0, 1, 1, 2)
    assert found.candidate.asked == found.baseline.asked == 4
    assert found.candidate.errors is not None
    assert found.candidate.errors.value == 0.5
    assert found.candidate.checks["contains"].value == 0.5
    assert found.candidate.checks["contains"].count == 4
    assert found.candidate.score is not None
    assert found.candidate.score.value == 0.5


def test_latencies_are_compared_where_both_answered() -> None:
    prompts = greetings(3).prompts
    slow, fast = Answer("Arr!", latency_ms=40), Answer("Arr!", latency_ms=20)
    pairs = [paired(prompts[n], slow, fast) for n in range(2)]
    pairs.append(paired(prompts[2], none(2), fast))
    ratio = compare(pairs, 0.95, seed=1).latency_ratio
    assert ratio is not None
    assert ratio.value == pytest.approx(2)
    assert ratio.count == 2


def test_lengths_refusals_and_cut_off_answers_are_told_of_each_side() -> None:
    prompts = greetings(2).prompts
    pairs = [
        paired(prompts[0], Answer("I'm sorry, but no."), Answer("Arr! Ahoy there")),
        paired(prompts[1], Answer("Arr!", finish_reason="length"), Answer("Arr! Ahoy there")),
    ]
    side = compare(pairs, 0.95, seed=1).candidate
    assert side.refusals is not None
    assert side.refusals.value == 0.5
    assert side.cut_off == 1
    assert side.words_p50 == 2.5
