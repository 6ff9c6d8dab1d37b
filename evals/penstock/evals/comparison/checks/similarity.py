"""Texts that are alike, word by word."""

from __future__ import annotations

from penstock.evals.comparison.checks.between import beyond_self
from penstock.evals.comparison.pair import Pair
from penstock.evals.comparison.text import similarity


def unlike(pair: Pair) -> float | None:
    """How unlike the primary's the text is, beyond its own moods."""
    return beyond_self(pair, lambda one, other: 1 - similarity(one.text, other.text))
