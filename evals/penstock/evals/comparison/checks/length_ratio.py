"""Lengths of answers."""

from __future__ import annotations

from penstock.evals.comparison.checks.between import longer
from penstock.evals.comparison.pair import Pair


def length(pair: Pair) -> float | None:
    """How many times longer the text is than the primary's."""
    if pair.primary.failed or pair.candidate.failed:
        return None
    return longer(len(pair.candidate.text) or None, len(pair.primary.text) or None)
