"""Languages of answers."""

from __future__ import annotations

from typing import Final

import py3langid

from penstock.evals.comparison.checks.between import beyond_self
from penstock.evals.comparison.pair import Answer, Pair

_FEWEST: Final = 40
"""Letters of a text whose language can be told."""


def other_language(pair: Pair) -> float | None:
    """Whether it is another than the primary's, beyond its own moods."""
    return beyond_self(pair, _differs)


def _differs(one: Answer, other: Answer) -> float | None:
    if min(sum(map(str.isalpha, each.text)) for each in (one, other)) < _FEWEST:
        return None
    return float(py3langid.classify(one.text)[0] != py3langid.classify(other.text)[0])
