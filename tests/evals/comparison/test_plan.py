"""How many pairs it takes: beside the simulation, and as it looks on the way."""

from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.evals.comparison.betting import begun, step
from penstock.evals.comparison.plan import as_markdown, missing, pairs_needed, plan, with_self_arm
from penstock.evals.comparison.rules import rules
from penstock.evals.comparison.simulation import MARGIN, Row, simulate

LIMIT = math.log(20)
ERROR = rules().checks[0]


@pytest.mark.parametrize(
    ("row", "bound"),
    [(Row(0.02), -MARGIN), (Row(0.1), -MARGIN), (Row(0.02, 2 * MARGIN), 0), (Row(0.1, 0.04), 0)],
)
def test_the_pairs_it_tells_are_about_those_of_the_simulation(row: Row, bound: float) -> None:
    simulated = simulate(row, 100, 4000, seed=5).first[0]
    variance = row.discordance + row.worse_by - row.worse_by**2
    told = pairs_needed(LIMIT, row.worse_by or MARGIN, variance, bound)
    assert 0.6 <= told / simulated <= 1.6


def test_more_noise_and_narrower_margins_take_more_pairs() -> None:
    assert pairs_needed(LIMIT, 0.02, 0.02) < pairs_needed(LIMIT, 0.02, 0.1)
    assert pairs_needed(LIMIT, 0.02, 0.1) < pairs_needed(LIMIT, 0.01, 0.1)
    assert pairs_needed(LIMIT, 0.0, 0.1) > 1_000_000


def test_what_is_missing_falls_to_none_while_pairs_come() -> None:
    state, told = begun(), []
    for number in range(1200):
        state = step(state, float(number % 100 == 0) - float(number % 100 == 50), ERROR.margin)
        told.append(missing(state, ERROR, LIMIT))
    assert told[0] is None
    assert told[100] is not None
    assert told[1100] is not None
    assert told[1100] < told[100]


@pytest.mark.parametrize("mean", [-0.5, 0.5])
def test_what_is_missing_to_worse_and_better_is_told_too(mean: float) -> None:
    state = begun()
    for _ in range(60):
        state = step(state, mean, ERROR.margin)
    assert missing(state, ERROR, 100.0) is not None
    assert missing(state, ERROR, 1.0) == 0


def test_the_self_arm_takes_a_quarter_until_it_has_five_hundred() -> None:
    assert with_self_arm(100) == 400
    assert with_self_arm(500) == 2000
    assert with_self_arm(600) == 4000


def test_a_plan_says_for_each_gate_pairs_and_days() -> None:
    promises = plan(rules(), 1000)
    assert {each.check.name for each in promises} == {each.name for each in rules().gates}
    assert all(np.isclose(each.equal_days, each.equal / 1000) for each in promises)
    assert as_markdown(promises).count("\n") == len(promises) + 1
