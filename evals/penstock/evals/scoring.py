"""From what the load client saw to the figures of a table. Pure: values in, values out.

A *window* is one measurement of one target. A *target* is something that answers: it has a `front`
(the process that the client talks to: gateway or nginx) and a `behind` (replica or event source).
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

FRONT = "front"
BEHIND = "behind"

# With fewer connections, what a process allocates anyway is more than what they need.
CONNECTIONS_THAT_SHOW_IN_MEMORY = 16


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Durations in microseconds; all 0 where there was no sample."""

    count: int
    p50: float
    p90: float
    p99: float
    p999: float
    max: float


@dataclass(frozen=True, slots=True)
class Spent:
    """What one process spent within a window (None: it did not live through it) and holds."""

    cpu_us: float | None
    before_kib: int  # proportional set size when no connection was open
    at_end_kib: int


@dataclass(frozen=True, slots=True)
class Window:
    """One report of the load client."""

    seconds: float
    events: int
    answers: int
    failures: int  # failed requests, errors in streams, truncated streams; of the whole run
    longest_silence_us: float  # of any stream
    beside_per_s: float | None  # answers to the load beside it; None: there was none
    first_event_us: Quantiles
    gap_us: Quantiles
    answer_us: Quantiles
    processes: Mapping[str, Spent]


@dataclass(frozen=True, slots=True)
class Score:
    """The figures of one target in one scenario; None where there is nothing to measure.

    CPU in microseconds, user and system; durations in milliseconds.
    """

    front_us_per_event: float | None
    behind_us_per_event: float | None
    front_us_per_answer: float | None
    behind_us_per_answer: float | None
    client_us_per_event: float | None
    events_per_s: float | None
    answers_per_s: float | None
    first_event_p50_ms: float | None
    first_event_p99_ms: float | None
    gap_p50_ms: float | None
    gap_p99_ms: float | None
    answer_p50_ms: float | None
    longest_silence_ms: float | None  # of any stream, at its end too
    beside_per_s: float | None  # answers to the load beside it
    front_kib_per_connection: float | None
    failures: int


def window_from(report: Mapping[str, Any]) -> Window:
    """The window in a report of the load client, and in that of a load `beside` it."""
    beside = report.get("beside")
    return Window(
        seconds=report["seconds"],
        events=report["events"],
        answers=report["answers"],
        failures=_failures(report) + (_failures(beside) if beside else 0),
        longest_silence_us=report["longest_silence_us"],
        beside_per_s=ratio(beside["answers"], beside["seconds"]) if beside else None,
        first_event_us=Quantiles(**report["first_event_us"]),
        gap_us=Quantiles(**report["gap_us"]),
        answer_us=Quantiles(**report["answer_us"]),
        processes={each["name"]: _spent(each) for each in report["processes"]},
    )


def _failures(report: Mapping[str, Any]) -> int:
    return sum(report[kind] for kind in ("failed_requests", "stream_errors", "truncated"))


def _spent(process: Mapping[str, Any]) -> Spent:
    cpu_us = process["cpu_ns"] / 1000 if process["cpu_ns"] >= 0 else None
    kind = "pss" if process["pss_kib"] >= 0 and process["pss_before_kib"] >= 0 else "rss"
    return Spent(cpu_us, process[f"{kind}_before_kib"], process[f"{kind}_kib"])


def score(window: Window, connections: int) -> Score:
    """The figures of one window."""
    first, gap, answer = window.first_event_us, window.gap_us, window.answer_us
    seconds = window.seconds or 1.0
    return Score(
        front_us_per_event=_cpu_per(window, FRONT, window.events),
        behind_us_per_event=_cpu_per(window, BEHIND, window.events),
        front_us_per_answer=_cpu_per(window, FRONT, window.answers),
        behind_us_per_answer=_cpu_per(window, BEHIND, window.answers),
        client_us_per_event=_cpu_per(window, "client", window.events),
        events_per_s=window.events / seconds,
        answers_per_s=window.answers / seconds,
        first_event_p50_ms=first.p50 / 1000 if first.count else None,
        first_event_p99_ms=first.p99 / 1000 if first.count else None,
        gap_p50_ms=gap.p50 / 1000 if gap.count else None,
        gap_p99_ms=gap.p99 / 1000 if gap.count else None,
        answer_p50_ms=answer.p50 / 1000 if answer.count else None,
        longest_silence_ms=window.longest_silence_us / 1000 if gap.count else None,
        beside_per_s=window.beside_per_s,
        front_kib_per_connection=_memory_per_connection([window], connections),
        failures=window.failures,
    )


def combined(windows: Sequence[Window], connections: int) -> Score:
    """The medians of several rounds; failures are added up, memory and silence are the most."""
    scores = [score(window, connections) for window in windows]
    figures = {field.name: _median([getattr(s, field.name) for s in scores]) for field in _FIGURES}
    silences = [s.longest_silence_ms for s in scores if s.longest_silence_ms is not None]
    figures["longest_silence_ms"] = max(silences, default=None)
    figures["front_kib_per_connection"] = _memory_per_connection(windows, connections)
    return Score(**figures, failures=sum(s.failures for s in scores))


_FIGURES = [field for field in fields(Score) if field.name != "failures"]


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    """None where either is missing or nothing can be divided."""
    return numerator / denominator if numerator is not None and denominator else None


def quantile(ordered: Sequence[float], share: float) -> float:
    """What so many of the values, which are sorted, do not exceed."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _cpu_per(window: Window, process: str, count: int) -> float | None:
    spent = window.processes.get(process)
    return ratio(spent.cpu_us, count) if spent else None


def _memory_per_connection(windows: Sequence[Window], connections: int) -> float | None:
    # What a process got for the first round's streams it keeps for the next one's.
    fronts = [w.processes[FRONT] for w in windows if FRONT in w.processes]
    if not fronts or connections < CONNECTIONS_THAT_SHOW_IN_MEMORY:
        return None
    most = max(each.at_end_kib for each in fronts)
    return (most - min(each.before_kib for each in fronts)) / connections


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
