"""Bets: what makes their verdicts true, however often one looks; and another library beside."""

from __future__ import annotations

import math

import numpy as np
import pytest
import ville
from hypothesis import given
from hypothesis import strategies as st

from penstock.evals.comparison.betting import (
    FEWEST,
    FIELDS,
    Floats,
    Verdict,
    begun,
    estimate,
    step,
    verdicts,
    whole,
)

LIMIT = math.log(20)
MARGIN = 0.02
differences = st.floats(-1, 1) | st.sampled_from([-1.0, 0.0, 1.0])
histories = st.lists(differences, max_size=40)
margins = st.floats(0.001, 0.5)


def after(history: list[float] | Floats, margin: float = MARGIN) -> Floats:
    """The state after these differences."""
    state = begun()
    for each in history:
        state = step(state, each, margin)
    return state


def passed_at(history: Floats, field: str, margin: float = MARGIN) -> int | None:
    """The first pair after which a capital has passed its limit."""
    state = begun()
    for number, each in enumerate(history, start=1):
        state = step(state, each, margin)
        if state[FIELDS.index(field)] >= LIMIT:
            return number
    return None


def drawn(seed: int, worse: float, better: float, count: int = 4000) -> Floats:
    """Differences of a candidate that is worse and better in so many of all pairs."""
    luck = np.random.default_rng(seed).random(count)
    return np.where(luck < worse, 1.0, np.where(luck < worse + better, -1.0, 0.0))


@given(histories, margins, st.floats(0, 1), st.floats(0, 1))
def test_no_capital_can_be_expected_to_grow_where_its_claim_is_true(
    history: list[float], margin: float, low: float, high: float
) -> None:
    state = after(history, margin)
    for field, bound in (("worse", 0.0), ("equal", margin), ("better", 0.0)):
        # Two values whose mean is the claim's bound: the worst case, of which all others are made.
        below, above = bound - low * (1 + bound), bound + high * (1 - bound)
        chance = (bound - below) / (above - below) if above > below else 0.0
        capital = FIELDS.index(field)
        grown = [
            math.exp(step(state, each, margin)[capital] - state[capital]) for each in (below, above)
        ]
        assert (1 - chance) * grown[0] + chance * grown[1] <= 1 + 1e-9


@given(histories, margins, differences)
def test_one_difference_never_takes_more_than_half_of_a_capital(
    history: list[float], margin: float, difference: float
) -> None:
    state = after(history, margin)
    assert (step(state, difference, margin)[3:6] - state[3:6] >= math.log(0.5) - 1e-9).all()


@given(histories)
def test_worse_and_better_are_each_others_mirror(history: list[float]) -> None:
    one, other = after(history), after([-each for each in history])
    worse, better = FIELDS.index("worse"), FIELDS.index("better")
    assert one[worse] == pytest.approx(other[better])
    assert one[better] == pytest.approx(other[worse])


@given(histories, st.lists(st.integers(0, 40), max_size=5))
def test_a_pair_that_says_nothing_changes_nothing(history: list[float], places: list[int]) -> None:
    longer = list(history)
    for place in places:
        longer.insert(place, math.nan)
    assert after(longer).tolist() == after(history).tolist()


@given(st.lists(st.tuples(differences, differences), min_size=1, max_size=30))
def test_many_checks_side_by_side_are_each_what_they_are_alone(
    history: list[tuple[float, float]],
) -> None:
    state = begun(2)
    for both in history:
        state = step(state, both, np.array([0.02, 0.05]))
    for n, margin in enumerate((0.02, 0.05)):
        assert state[:, n] == pytest.approx(after([both[n] for both in history], margin))


@given(histories)
def test_the_estimate_is_the_mean(history: list[float]) -> None:
    expected = sum(history) / len(history) if history else 0
    assert estimate(after(history)) == pytest.approx(expected, abs=1e-12)


def test_a_limit_that_was_passed_stays_passed() -> None:
    sure = after(drawn(1, 0, 0, 400))
    assert verdicts(sure, MARGIN, LIMIT) == Verdict.EQUAL
    doubted = after([*drawn(1, 0, 0, 400), *[1.0] * 8, *[-1.0] * 8])
    assert doubted[FIELDS.index("equal")] < LIMIT
    assert verdicts(doubted, MARGIN, LIMIT) == Verdict.EQUAL


def test_who_is_a_little_worse_is_not_called_worse_however_sure_that_is() -> None:
    little = drawn(3, 0.012, 0.002, 20_000)
    state = after(little)
    assert state[FIELDS.index("highest_worse")] > LIMIT
    assert verdicts(state, MARGIN, LIMIT) == Verdict.EQUAL


@pytest.mark.parametrize(
    ("worse", "better", "expected"),
    [(0.2, 0.02, Verdict.WORSE), (0.02, 0.2, Verdict.BETTER), (0.01, 0.01, Verdict.EQUAL)],
)
def test_who_is_worse_better_or_equal_is_called_so(
    worse: float, better: float, expected: Verdict
) -> None:
    assert verdicts(after(drawn(2, worse, better)), MARGIN, LIMIT) == expected


def test_nothing_is_said_of_few_pairs() -> None:
    assert verdicts(after([1.0] * (FEWEST - 1)), MARGIN, LIMIT) == Verdict.UNDECIDED
    assert verdicts(after([1.0] * FEWEST), MARGIN, LIMIT) == Verdict.WORSE


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        ([Verdict.EQUAL, Verdict.EQUAL], Verdict.EQUAL),
        ([Verdict.EQUAL, Verdict.BETTER], Verdict.BETTER),
        ([Verdict.UNDECIDED, Verdict.BETTER], Verdict.UNDECIDED),
        ([Verdict.UNDECIDED, Verdict.WORSE], Verdict.WORSE),
        ([Verdict.BETTER, Verdict.WORSE], Verdict.WORSE),
    ],
)
def test_one_worse_gate_decides_and_else_all_have_to_be_decided(
    gates: list[Verdict], expected: Verdict
) -> None:
    assert whole(np.array(gates, dtype=np.int8)) == expected


@pytest.mark.parametrize(("worse", "better"), [(0.05, 0.01), (0.09, 0.05), (0.19, 0.15)])
def test_worse_is_found_as_fast_as_by_villes_confidence_sequence(
    worse: float, better: float
) -> None:
    ours, theirs = [], []
    for seed in range(9):
        stream = drawn(seed, worse, better)
        # Two-sided at 10 %: each of its sides bets at the 5 % that ours does.
        sequence = ville.BettingCS(bounds=(-1, 1), alpha=0.1, grid=2001).fit(stream)
        found = np.flatnonzero(sequence.lower_ > 0)
        theirs.append(found[0] + 1 if found.size else math.inf)
        ours.append(passed_at(stream, "worse") or math.inf)
    assert np.median(ours) <= 1.15 * np.median(theirs)


@pytest.mark.parametrize("differ", [0.0, 0.02, 0.1])
def test_what_we_call_equal_villes_confidence_sequence_holds_below_the_margin(
    differ: float,
) -> None:
    for seed in range(3):
        stream = drawn(seed, differ / 2, differ / 2, 8000)
        sequence = ville.BettingCS(bounds=(-1, 1), alpha=0.1, grid=2001).fit(stream)
        assert passed_at(stream, "equal") is not None
        assert passed_at(stream, "worse") is None
        assert sequence.upper_[-1] < MARGIN
        assert sequence.lower_[-1] <= 0
