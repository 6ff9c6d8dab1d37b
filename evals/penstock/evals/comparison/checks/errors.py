"""Errors: a status, or a stream that broke. An error is a result, never a pair to leave out."""

from __future__ import annotations

from penstock.evals.comparison.pair import Pair


def error(pair: Pair) -> float | None:
    """Who of the two had no whole answer."""
    return float(pair.candidate.failed) - float(pair.primary.failed)
