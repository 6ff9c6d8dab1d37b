"""What checks have in common: differences between a pair's answers, positive where the candidate is
worse, and None where a pair says nothing. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable

from penstock.evals.comparison.pair import Answer, Pair

_MOST_OCTAVES = 2.0
"""What a ratio is cut off at, both ways: four times is as bad as forty."""


def harm(pair: Pair, has: Callable[[Answer], bool]) -> float | None:
    """1 where the candidate's answer alone has what is bad, -1 where the primary's alone has."""
    if pair.primary.failed or pair.candidate.failed:
        return None
    return float(has(pair.candidate)) - float(has(pair.primary))


def beyond_self(pair: Pair, distance: Callable[[Answer, Answer], float | None]) -> float | None:
    """How much farther from the primary's answer the candidate's is than the primary's own, asked
    again. Distances lie in 0 to 1."""
    if pair.again is None or any(
        each.failed for each in (pair.primary, pair.candidate, pair.again)
    ):
        return None
    far, usual = distance(pair.candidate, pair.primary), distance(pair.again, pair.primary)
    return None if far is None or usual is None else far - usual


def longer(candidate: float | None, other: float | None) -> float | None:
    """How many times more the candidate has: a half for twice as much, never beyond -1 to 1."""
    if not candidate or not other or candidate < 0 or other < 0:
        return None
    octaves = math.log2(candidate / other)
    return min(max(octaves, -_MOST_OCTAVES), _MOST_OCTAVES) / _MOST_OCTAVES


def times(difference: float) -> float:
    """The ratio that `longer` made this difference of."""
    return float(2 ** (difference * _MOST_OCTAVES))
