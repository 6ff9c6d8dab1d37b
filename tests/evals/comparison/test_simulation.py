"""Error rates and sample sizes, in a small form; `evals shadow-simulation` is the whole."""

from __future__ import annotations

import pytest

from penstock.evals.comparison.simulation import MARGIN, Course, Row, rows, simulate

SHADOWS, PAIRS = 200, 1500


@pytest.mark.parametrize("course", list(Course))
@pytest.mark.parametrize("gates", [1, 10])
def test_an_equal_candidate_is_seldom_called_worse(course: Course, gates: int) -> None:
    found = simulate(Row(0.1, gates=gates, course=course), SHADOWS, PAIRS // gates, seed=1)
    assert found.worse <= 0.05


@pytest.mark.parametrize(("discordance", "within"), [(0.02, 312), (0.1, 748)])
def test_twice_the_margin_is_found_and_in_the_pairs_that_are_promised(
    discordance: float, within: int
) -> None:
    found = simulate(Row(discordance, 2 * MARGIN), SHADOWS, 3 * PAIRS, seed=2)
    assert found.worse >= 0.95
    assert found.first[0] <= 1.15 * within


def test_an_equal_candidate_is_called_equal_in_the_pairs_that_are_promised() -> None:
    found = simulate(Row(0.02), SHADOWS, PAIRS, seed=3)
    assert found.equal >= 0.95
    assert found.first[0] <= 1.15 * 481


def test_the_same_seed_gives_the_same_row() -> None:
    row = Row(0.1, course=Course.SESSIONS)
    assert simulate(row, 20, 200, seed=4) == simulate(row, 20, 200, seed=4)


def test_the_rows_are_those_of_the_documentation() -> None:
    assert {each.discordance for each in rows()} == {0.005, 0.02, 0.1, 0.3}
    assert {each.course for each in rows()} == set(Course)
