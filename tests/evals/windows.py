"""Reports of the load client as it writes them, for the tests of what is made of them."""

from __future__ import annotations

from typing import Any

NONE = {"count": 0, "p50": 0, "p90": 0, "p99": 0, "p999": 0, "max": 0}


def process(name: str, cpu_us: float, before_kib: int = 1000, kib: int = 1000) -> dict[str, Any]:
    """One watched process."""
    return {
        "name": name,
        "pid": 1,
        "cpu_ns": int(cpu_us * 1000),
        "pss_before_kib": before_kib,
        "pss_kib": kib,
        "rss_before_kib": before_kib * 2,
        "rss_kib": kib * 2,
    }


def quantiles(p50: float, p99: float) -> dict[str, float]:
    """A thousand durations in microseconds."""
    return {"count": 1000, "p50": p50, "p90": p99, "p99": p99, "p999": p99, "max": p99}


def report(events: int = 1000, answers: int = 100, **fields: Any) -> dict[str, Any]:
    """One window of two seconds; the front spends 4 us per event, what is behind it 2."""
    return {
        "seconds": 2.0,
        "events": events,
        "answers": answers,
        "failed_requests": 0,
        "stream_errors": 0,
        "truncated": 0,
        "problem": "",
        "longest_silence_us": 40_000,
        "first_event_us": quantiles(800, 2_000),
        "gap_us": NONE,
        "answer_us": quantiles(1_000, 3_000),
        "processes": [process("front", 4 * events), process("behind", 2 * events)],
        **fields,
    }
