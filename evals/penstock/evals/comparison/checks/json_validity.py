"""JSON that was asked for: whether it is, and whether it is of its schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from penstock.evals.comparison.bad_check import BadCheck
from penstock.evals.comparison.checks.between import harm
from penstock.evals.comparison.pair import Pair
from penstock.evals.comparison.schemas import validator


def valid_json(pair: Pair) -> float | None:
    """Who of the two answered with something else. A tool's call is no answer in JSON, and none was
    due; a schema that nobody could check was not asked for."""
    valid = _validator(pair.asked.schema or {})
    if not pair.asked.json or valid is None:
        return None
    return harm(pair, lambda a: not all(each.calls or valid(each.text) for each in a.choices))


def _validator(schema: Mapping[str, Any]) -> Callable[[str], bool] | None:
    return _kept(json.dumps(schema, sort_keys=True))


@lru_cache(maxsize=256)  # a service asks for the same few schemas again and again
def _kept(schema: str) -> Callable[[str], bool] | None:
    try:
        return validator(json.loads(schema))
    except BadCheck:
        return None


__all__ = ["valid_json"]
