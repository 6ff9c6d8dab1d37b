"""Answers that hold nothing."""

from __future__ import annotations

from penstock.evals.comparison.checks.between import harm
from penstock.evals.comparison.pair import Answer, Pair


def empty(pair: Pair) -> float | None:
    """Who of the two said nothing, called nothing and refused nothing."""
    return harm(pair, _empty)


def _empty(answer: Answer) -> bool:
    return not any(each.text.strip() or each.calls or each.refusal for each in answer.choices)
