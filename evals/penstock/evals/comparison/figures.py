"""Figures as people read them. Pure."""

from __future__ import annotations

from penstock.evals.comparison.intervals import Interval


def as_written(value: float, unit: str) -> str:
    """A share in percent, a score with its sign's two decimals, a ratio with its cross."""
    if unit == "share":
        return f"{value:.0%}" if abs(value) >= 0.1 or value == 0 else f"{value:.1%}"
    return f"{value:.2f}x" if unit == "times" else f"{value:.2f}"


def between(interval: Interval, unit: str) -> str:
    """`between 2.0% and 14%`."""
    return f"between {as_written(interval.low, unit)} and {as_written(interval.high, unit)}"


def counted(count: int, one: str) -> str:
    """`1 prompt`, `2 prompts`, `no prompt`."""
    return f"{count or 'no'} {one}{'s' if count > 1 else ''}"
