"""What gateways judge by objectives becomes burn rates over the last hours."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from penstock.control.managers.routing.slo_book import SloBook
from penstock.control.state.cluster import DeploymentCounts
from penstock.control.state.routing.slo import Slo, SloCount
from tests.fakes.control_values import NOON, SECOND

MINUTE = timedelta(minutes=1)
ASKED = Slo(total_p99_ms=2000, error_rate=0.1)


def told(requests: int, bad: int, *, objective: str = "error_rate") -> list[DeploymentCounts]:
    """A gateway's report."""
    return [DeploymentCounts("mini", slo=(SloCount(objective, requests, bad),))]


def rates(book: SloBook, now: datetime, slo: Slo = ASKED) -> dict[tuple[str, int], float]:
    """Burn rates by objective and minutes of the window."""
    return {
        (it.objective.value, int(it.window / MINUTE)): round(it.rate, 6)
        for it in book.burns("mini", slo, now)
    }


def test_a_gateway_that_counts_for_long_already_says_nothing_of_these_hours() -> None:
    book = SloBook()
    book.observe("a", "i", told(1000, 900), NOON)
    assert set(rates(book, NOON).values()) == {0.0}
    assert book.totals() == {}
    book.observe("a", "i", told(1100, 920), NOON + SECOND)
    assert rates(book, NOON + SECOND)["error_rate", 5] == pytest.approx(2.0)
    assert book.totals()["mini", "error_rate"] == SloCount("error_rate", 100, 20)


def test_each_window_forgets_what_is_older() -> None:
    book = SloBook()
    book.observe("a", "i", told(0, 0), NOON)
    book.observe("a", "i", told(100, 100), NOON + SECOND)
    book.observe("a", "i", told(200, 100), NOON + 30 * MINUTE)
    found = rates(book, NOON + 30 * MINUTE)
    assert (found["error_rate", 5], found["error_rate", 60]) == (0.0, 5.0)
    found = rates(book, NOON + 2 * 60 * MINUTE)
    assert (found["error_rate", 60], found["error_rate", 360]) == (0.0, 5.0)
    assert set(rates(book, NOON + 7 * 60 * MINUTE).values()) == {0.0}


def test_gateways_are_added_up_and_another_instance_counts_from_nothing() -> None:
    book = SloBook()
    for name in ("a", "b"):
        book.observe(name, "i", told(0, 0), NOON)
        book.observe(name, "i", told(50, 5), NOON + SECOND)
    book.observe("a", "j", told(10, 10), NOON + 2 * SECOND)
    assert book.totals()["mini", "error_rate"] == SloCount("error_rate", 110, 20)


def test_two_processes_of_one_id_that_report_in_turn_are_counted_once_each() -> None:
    book = SloBook()
    for _ in range(3):
        for instance, requests in (("i", 100), ("j", 50)):
            book.observe("a", instance, told(requests, 5), NOON)
    assert book.totals()["mini", "error_rate"] == SloCount("error_rate", 50, 5)


def test_a_deployment_that_begins_anew_under_its_name_counts_anew() -> None:
    book = SloBook()
    book.observe("a", "i", told(0, 0), NOON)
    book.observe("a", "i", told(50, 5), NOON + SECOND)
    book.keep(["a"], [])
    assert book.totals() == {}
    book.observe("a", "i", told(3, 1), NOON + 2 * SECOND)
    assert book.totals()["mini", "error_rate"] == SloCount("error_rate", 3, 1)


def test_only_what_is_asked_for_now_is_told_with_its_own_budget() -> None:
    book = SloBook()
    for at, count in ((NOON, 0), (NOON + SECOND, 100)):
        counts = [
            DeploymentCounts(
                "mini", slo=(SloCount("ttft_p50", count, count), SloCount("total_p99", count, 0))
            )
        ]
        book.observe("a", "i", counts, at)
    assert {objective for objective, _ in rates(book, NOON + SECOND)} == {"total_p99", "error_rate"}
    found = rates(book, NOON + SECOND, Slo(ttft_p50_ms=800))
    assert found == {("ttft_p50", 5): 2.0, ("ttft_p50", 60): 2.0, ("ttft_p50", 360): 2.0}
    assert rates(book, NOON + SECOND, Slo()) == {}
