"""Texts that are the same: to the letter, or but for case, space and marks."""

from __future__ import annotations

import re

from penstock.evals.comparison.checks.between import beyond_self
from penstock.evals.comparison.pair import Pair
from penstock.evals.comparison.text import words


def exact(pair: Pair) -> float | None:
    """Whether the text is another than the primary's, beyond its own moods."""
    return beyond_self(pair, lambda one, other: float(one.text != other.text))


def normalised(pair: Pair) -> float | None:
    """Whether its words are others, in small letters and without marks."""
    return beyond_self(pair, lambda one, other: float(_plain(one.text) != _plain(other.text)))


def _plain(text: str) -> list[str]:
    return [each for each in words(text) if re.match(r"\w", each)]
