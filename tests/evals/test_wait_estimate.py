"""Estimates of waits: errors, medians, the gateway's own histogram, and the requests asked."""

from __future__ import annotations

import random

import pytest

from penstock.evals.errors import EvalError
from penstock.evals.wait_estimate import (
    LEARNING,
    SHAPES,
    Shape,
    Wait,
    as_dict,
    as_markdown,
    body_of,
    foresight,
    histogram_median,
)

SHAPE = Shape("some", "some clients", clients=4)
LEARNT = [Wait(0, 1000)] * LEARNING


def page(**counts: float) -> str:
    """A page with these counts up to each bound."""
    return "".join(
        f'penstock_gateway_wait_estimate_error_ratio_bucket{{deployment="d",le="{le}"}} {count}\n'
        for le, count in counts.items()
    )


def test_the_first_hundred_answers_and_short_waits_do_not_count() -> None:
    waits = [*LEARNT, Wait(5000, 100), Wait(1100, 1000), Wait(800, 1000), Wait(1000, 1000)]
    found = foresight(SHAPE, waits, counted=None)
    assert (found.answers, found.waits, found.wait_p50_ms) == (104, 3, 1000)
    assert found.error_p50 == pytest.approx(0.1)
    assert found.bias_p50 == 0
    assert found.passed


def test_estimates_that_are_too_long_miss_the_goal_with_a_bias() -> None:
    found = foresight(SHAPE, [*LEARNT, Wait(1500, 1000)], counted=0.4)
    assert (found.error_p50, found.bias_p50, found.passed) == (0.5, 0.5, False)
    shown = as_markdown([found])
    assert "| some clients | 101 | 1 | 1,000 ms | 50% | 50% | +50% | 40% |" in shown
    assert "- FAIL: some: half of the estimates are off by less than 30% (50%)" in shown
    assert as_dict([found])[0]["passed"] is False


def test_a_load_under_which_nobody_waits_is_an_error() -> None:
    with pytest.raises(EvalError, match="some: nobody waited over 100 ms: measure for longer"):
        foresight(SHAPE, [*LEARNT, Wait(50, 60)], counted=None)


def test_the_histograms_median_is_of_what_came_between_two_pages() -> None:
    before = page(**{"0.1": 50, "0.2": 60, "+Inf": 60})
    after = page(**{"0.1": 51, "0.2": 62, "+Inf": 63})
    assert histogram_median(before, after) == pytest.approx(0.15)
    assert histogram_median("", page(**{"0.1": 0, "0.2": 4, "+Inf": 4})) == pytest.approx(0.15)
    assert histogram_median("", page(**{"0.1": 0, "0.2": 0, "+Inf": 4})) == 0.2


def test_a_histogram_in_which_nothing_came_has_no_median() -> None:
    assert histogram_median(page(**{"+Inf": 3}), page(**{"+Inf": 3})) is None
    assert histogram_median("", "") is None


def test_lengths_are_told_learnt_or_equal() -> None:
    assert len({shape.name for shape in SHAPES}) == len(SHAPES)
    chance = random.Random(1)
    assert body_of(Shape("a", "", 1, varied=False), chance)["max_tokens"] == 50
    lengths = {body_of(Shape("b", "", 1), chance)["max_tokens"] for _ in range(20)}
    assert len(lengths) > 5
    untold = body_of(Shape("c", "", 1, told=False), chance)
    assert "max_tokens" not in untold
    assert untold["simulate"]
