"""The two bets hold what they promise, by exact sums over all that can happen."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from penstock.control.state.canary.bets import Shares, log_evidence, log_power


def chance(count: int, of: int, rate: float) -> float:
    """Of a binomial count."""
    return math.comb(of, count) * rate**count * (1 - rate) ** (of - count)


def mean_of(bets: list[float], of: int, rate: float) -> float:
    """What a bet comes to on average, by its logarithm for each count."""
    return math.fsum(chance(i, of, rate) * math.exp(bet) for i, bet in enumerate(bets))


@given(
    st.integers(0, 60), st.floats(0.002, 20), st.floats(0, 1, exclude_min=True, exclude_max=True)
)
def test_the_bet_against_no_worse_gains_nothing_on_average_while_that_is_true(
    events: int, odds: float, share: float
) -> None:
    bets = [log_evidence(mine, events - mine, odds) for mine in range(events + 1)]
    assert mean_of(bets, events, share * odds / (1 + odds)) <= 1 + 1e-9


@given(st.integers(0, 300), st.integers(0, 300), st.floats(0.002, 20))
def test_one_more_of_the_candidate_tells_more_against_it(
    mine: int, others: int, odds: float
) -> None:
    assert log_evidence(mine + 1, others, odds) > log_evidence(mine, others, odds)


@given(
    st.integers(1, 60),
    st.sampled_from([0.001, 0.02, 0.1, 0.5, 0.8]),
    st.sampled_from([0.02, 0.04, 0.1]),
    st.floats(0, 1),
)
def test_the_bet_against_far_worse_gains_nothing_on_average_while_that_is_true(
    sessions: int, stable_rate: float, far: float, more: float
) -> None:
    """With a stable arm that is known well, as it is at a small share."""
    stable = 100_000
    rate = stable_rate + far + more * (1 - stable_rate - far)
    bets = [
        log_power(Shares(bad, sessions, round(stable * stable_rate), stable), far).log
        for bad in range(sessions + 1)
    ]
    assert mean_of(bets, sessions, rate) <= 1.02


@given(
    st.integers(0, 50),
    st.integers(0, 1000),
    st.integers(0, 50),
    st.integers(0, 1000),
    st.floats(0.002, 3),
)
def test_whatever_was_counted_the_bet_against_far_worse_is_a_number(
    bad: int, good: int, stable_bad: int, stable_good: int, far: float
) -> None:
    power = log_power(Shares(bad, bad + good, stable_bad, stable_bad + stable_good), far)
    assert math.isfinite(power.log) or far > 0.99
    assert power.growth >= 0


def test_where_one_arm_has_nothing_no_bet_is_made() -> None:
    assert log_power(Shares(0, 100, 0, 0), 0.02).log == 0
    assert log_power(Shares(0, 0, 0, 100), 0.02).log == 0
