from __future__ import annotations

import pytest

from penstock.evals.scoring import combined, ratio, score, window_from
from tests.evals.windows import process, quantiles, report


def test_cpu_is_divided_by_events_and_by_answers() -> None:
    figures = score(window_from(report(events=1000, answers=100)), connections=10)
    assert figures.front_us_per_event == 4
    assert figures.behind_us_per_event == 2
    assert figures.front_us_per_answer == 40
    assert figures.behind_us_per_answer == 20
    assert figures.client_us_per_event is None


def test_rates_are_per_second_and_durations_in_milliseconds() -> None:
    figures = score(window_from(report(gap_us=quantiles(20_000, 26_000))), connections=10)
    assert (figures.events_per_s, figures.answers_per_s) == (500, 50)
    assert (figures.first_event_p50_ms, figures.first_event_p99_ms) == (0.8, 2)
    assert (figures.gap_p50_ms, figures.gap_p99_ms) == (20, 26)


def test_what_never_happened_has_no_figure() -> None:
    figures = score(window_from(report(answers=0)), connections=10)
    assert figures.front_us_per_answer is None
    assert figures.gap_p50_ms is None


def test_a_process_that_was_replaced_has_no_cpu_figure() -> None:
    gone = {**process("front", 0), "cpu_ns": -1}
    assert score(window_from(report(processes=[gone])), 10).front_us_per_event is None


def test_every_kind_of_failure_counts() -> None:
    window = window_from(report(failed_requests=1, stream_errors=2, truncated=4))
    assert score(window, 10).failures == 7


def test_rounds_are_combined_to_medians_and_failures_added_up() -> None:
    rounds = [
        report(processes=[process("front", cpu)], failed_requests=1) for cpu in (1000, 9000, 2000)
    ]
    figures = combined([window_from(each) for each in rounds], connections=10)
    assert figures.front_us_per_event == 2
    assert figures.failures == 3


def test_memory_is_the_most_above_the_first_rounds_start() -> None:
    first = report(processes=[process("front", 1, before_kib=1000, kib=3000)])
    later = report(processes=[process("front", 1, before_kib=2900, kib=3100)])
    figures = combined([window_from(first), window_from(later)], connections=100)
    assert figures.front_kib_per_connection == pytest.approx(21)


def test_memory_falls_back_to_resident_pages_where_shares_are_unknown() -> None:
    hidden = {**process("front", 1, 1000, 2000), "pss_kib": -1}
    assert score(window_from(report(processes=[hidden])), 20).front_kib_per_connection == 100


def test_failures_of_the_load_beside_count_and_its_answers_are_told() -> None:
    beside = report(answers=300, failed_requests=2)
    figures = score(window_from(report(beside=beside, truncated=1)), 10)
    assert figures.failures == 3
    assert figures.beside_per_s == 150
    assert score(window_from(report()), 10).beside_per_s is None


def test_the_longest_silence_of_all_rounds_is_told_of_streams() -> None:
    rounds = [
        report(gap_us=quantiles(20_000, 26_000), longest_silence_us=longest)
        for longest in (50_000, 30_000, 40_000)
    ]
    figures = combined([window_from(each) for each in rounds], connections=10)
    assert figures.longest_silence_ms == 50
    assert combined([window_from(report())], connections=10).longest_silence_ms is None


def test_a_few_connections_do_not_show_in_memory() -> None:
    assert score(window_from(report()), 15).front_kib_per_connection is None
    assert score(window_from(report()), 16).front_kib_per_connection == 0


def test_ratio_of_nothing_is_nothing() -> None:
    assert ratio(1, 2) == 0.5
    assert ratio(None, 2) is None
    assert ratio(1, None) is None
    assert ratio(1, 0) is None
