"""What answers cost."""

from __future__ import annotations

from penstock.evals.comparison.checks.between import longer
from penstock.evals.comparison.pair import Pair


def cost(pair: Pair) -> float | None:
    """How many times more the candidate's answer costs than the primary's."""
    if pair.primary.failed or pair.candidate.failed:
        return None
    return longer(pair.candidate.cost, pair.primary.cost)
