"""What an operator has taken out of requests, as a file says it: {"keys": [...], "patterns": {}}.

Pure.
"""

from __future__ import annotations

import json
from typing import Final

from penstock.evals.comparison.bad_check import BadCheck
from penstock.evals.comparison.redaction import Rules, rules

_FIELDS: Final = ("keys", "patterns")


def rules_of(text: str) -> Rules:
    """Those that ship, and the file's. Raises `BadCheck`, which names field and value."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadCheck(f"is no JSON: {error}") from error
    if not isinstance(told, dict):
        raise BadCheck(f"is {_shown(told)}: it must be an object of {' and '.join(_FIELDS)}")
    if unknown := sorted(set(told) - set(_FIELDS)):
        raise BadCheck(f"there is no field {unknown[0]!r}: there are {', '.join(_FIELDS)}")
    keys, patterns = told.get("keys", []), told.get("patterns", {})
    if not isinstance(keys, list) or not all(isinstance(each, str) for each in keys):
        raise BadCheck(f"keys: is {_shown(keys)}, must be a list of names")
    if not isinstance(patterns, dict):
        raise BadCheck(f"patterns: is {_shown(patterns)}, must be an object of name and pattern")
    return _made(keys, patterns)


def _made(keys: list[str], patterns: dict[str, str]) -> Rules:
    try:
        rules(keys=keys)
    except BadCheck as error:
        raise BadCheck(f"keys: {error}") from error
    try:
        return rules(patterns, keys=keys)
    except BadCheck as error:
        raise BadCheck(f"patterns: {error}") from error


def _shown(value: object) -> str:
    return repr(value)[:80]
