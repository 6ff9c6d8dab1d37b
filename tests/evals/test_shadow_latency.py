"""What is told of clients' waits with a shadow beside those without."""

from __future__ import annotations

import pytest

from penstock.evals.errors import EvalError
from penstock.evals.shadow_latency import Found, Look, as_dict, as_markdown


def look(times: float, busy: float = 20.0) -> Look:
    """Waits that are so many times those of a usual window."""
    return Look({"p50": times, "p99": 2 * times}, {"p50": 9 * times, "p99": 10 * times}, 100, busy)


def found(times: float, busy: float = 20.0) -> Found:
    """Rounds that differ by chance, and by so much."""
    noises = (0.99, 1.0, 1.01) * 4
    rounds = [(look(noise, busy), look(times * noise * noise, busy)) for noise in noises]
    return Found(rounds, {"paired": 1200})


@pytest.mark.parametrize(
    ("times", "busy", "passed"),
    [(1.0, 20, True), (0.9, 20, True), (1.05, 20, False), (1.2, 20, False), (1.0, 60, False)],
)
def test_clients_wait_as_long_only_where_all_of_the_interval_is_within_the_goal(
    times: float, busy: float, *, passed: bool
) -> None:
    assert found(times, busy).passed is passed
    assert as_dict(found(times, busy))["passed"] is passed


def test_each_figure_has_a_row_with_its_interval() -> None:
    told = as_markdown(found(1.05))
    assert "12 paired rounds of 100 answers" in told
    assert "paired 1,200" in told
    rows = [line for line in told.splitlines() if line.startswith(("| first", "| whole"))]
    assert ["missed" in row for row in rows] == [True, False, True, False]
    assert all("1.05" in row for row in rows)


def test_one_round_is_too_few() -> None:
    with pytest.raises(EvalError, match="too few rounds"):
        Found([(look(1), look(1))], {}).ratio("first", "p50")
