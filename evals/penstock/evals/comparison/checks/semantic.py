"""Texts that mean the same, as an embedding deployment sees it."""

from __future__ import annotations

import numpy as np

from penstock.evals.comparison.checks.between import beyond_self
from penstock.evals.comparison.pair import Answer, Pair


def other_meaning(pair: Pair) -> float | None:
    """The cosine distance from the primary's, beyond that of its own moods."""
    return beyond_self(pair, _distance)


def _distance(one: Answer, other: Answer) -> float | None:
    if one.embedding is None or other.embedding is None:
        return None
    a, b = np.asarray(one.embedding, dtype=float), np.asarray(other.embedding, dtype=float)
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    if a.shape != b.shape or not size:
        return None
    return min(max(1 - float(a @ b) / size, 0.0), 1.0)
