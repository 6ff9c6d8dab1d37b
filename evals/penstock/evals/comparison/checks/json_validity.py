"""JSON that was asked for: whether it is, and whether it is of its schema."""

from __future__ import annotations

from penstock.evals.comparison.checks.between import harm
from penstock.evals.comparison.pair import Pair
from penstock.evals.comparison.schemas import strangers_validator


def valid_json(pair: Pair) -> float | None:
    """Who of the two answered with something else. A tool's call is no answer in JSON, and none was
    due; a schema that nobody could check was not asked for."""
    valid = strangers_validator(pair.asked.schema or {"type": "object"})
    if not pair.asked.json or valid is None:
        return None
    return harm(pair, lambda a: not all(each.calls or valid(each.text) for each in a.choices))
