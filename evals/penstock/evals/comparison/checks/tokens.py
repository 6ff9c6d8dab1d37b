"""Tokens of answers, as they are counted for the bill."""

from __future__ import annotations

from penstock.evals.comparison.checks.between import longer
from penstock.evals.comparison.pair import Pair


def tokens(pair: Pair) -> float | None:
    """How many times more the candidate's answer has than the primary's."""
    if pair.primary.failed or pair.candidate.failed:
        return None
    return longer(pair.candidate.completion_tokens, pair.primary.completion_tokens)
