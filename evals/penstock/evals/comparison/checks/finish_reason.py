"""How answers end: cut off by their length, or not."""

from __future__ import annotations

from penstock.evals.comparison.checks.between import harm
from penstock.evals.comparison.pair import Answer, Pair


def cut_off(pair: Pair) -> float | None:
    """Who of the two was cut off."""
    return harm(pair, _cut_off)


def _cut_off(answer: Answer) -> bool:
    return any(each.finish_reason == "length" for each in answer.choices)
