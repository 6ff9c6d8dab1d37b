"""Intervals hold the figure, grow wider with confidence, and are never sure of few."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.evals.comparison.intervals import (
    Interval,
    chance_of,
    mean_ratio,
    mean_within,
    share,
)

CONFIDENCE = st.sampled_from([0.8, 0.9, 0.95, 0.99, 0.999])
SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=40)


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int]:
    """So many of so many."""
    count = draw(st.integers(1, 2000))
    return draw(st.integers(0, count)), count


@given(counts(), CONFIDENCE)
def test_a_share_lies_within_its_interval_and_the_interval_within_the_possible(
    counted: tuple[int, int], confidence: float
) -> None:
    found = share(*counted, confidence)
    assert found is not None
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high


@given(counts())
def test_more_confidence_is_never_a_narrower_interval(counted: tuple[int, int]) -> None:
    widths = [width(share(*counted, confidence)) for confidence in (0.8, 0.9, 0.95, 0.99)]
    assert widths == sorted(widths)


@given(st.integers(0, 50), st.integers(1, 50))
def test_more_of_the_same_is_never_a_wider_interval(hits: int, misses: int) -> None:
    few, many = share(hits, hits + misses, 0.95), share(hits * 4, (hits + misses) * 4, 0.95)
    assert width(many) < width(few)


@settings(deadline=None, max_examples=40)
@given(SCORES, CONFIDENCE)
def test_a_mean_lies_within_its_interval_and_the_interval_within_the_possible(
    values: list[float], confidence: float
) -> None:
    found = mean_within(values, 0, 1, confidence, seed=3)
    assert found is not None
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert math.isclose(found.value, sum(values) / len(values), abs_tol=1e-9)


@settings(deadline=None, max_examples=20)
@given(st.floats(-0.9, 0.9), st.integers(1, 30))
def test_values_that_are_all_alike_are_no_certainty(value: float, count: int) -> None:
    found = mean_within([value] * count, -1, 1, 0.95, seed=3)
    assert found is not None
    assert found.low < value < found.high


def test_values_that_are_all_alike_are_nearer_to_one_the_more_they_are() -> None:
    widths = [width(mean_within([0.0] * count, -1, 1, 0.95, seed=3)) for count in (10, 40, 160)]
    assert widths[0] > widths[1] > widths[2]


def test_the_same_seed_gives_the_same_interval() -> None:
    values = [0.1, 0.5, 0.9, 0.2]
    assert mean_within(values, 0, 1, 0.95, seed=1) == mean_within(values, 0, 1, 0.95, seed=1)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.floats(0.1, 1e4), st.floats(0.1, 1e4)), min_size=2, max_size=30))
def test_a_ratio_lies_within_its_interval(pairs: list[tuple[float, float]]) -> None:
    found = mean_ratio(pairs, 0.95, seed=3)
    assert found is not None
    assert 0 < found.low <= found.value <= found.high


def test_a_ratio_of_everything_twice_as_long_is_two() -> None:
    found = mean_ratio([(2.0, 1.0), (20.0, 10.0), (6.0, 3.0)], 0.95, seed=3)
    assert found is not None
    assert math.isclose(found.value, 2)


def test_nothing_measured_is_no_interval() -> None:
    assert share(0, 0, 0.95) is None
    assert mean_within([], 0, 1, 0.95, seed=3) is None
    assert mean_ratio([(1.0, 1.0)], 0.95, seed=3) is None
    assert mean_ratio([(1.0, 0.0), (0.0, 1.0)], 0.95, seed=3) is None
    assert chance_of(0, 0) is None


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_sign_test_takes_no_side(wins: int, losses: int) -> None:
    assert chance_of(wins, losses) == pytest.approx(chance_of(losses, wins))


def width(found: Interval | None) -> float:
    """From end to end."""
    assert found is not None
    return found.high - found.low
