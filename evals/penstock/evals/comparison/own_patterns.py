"""Regular expressions of the operator's that are looked for in texts of strangers: bounded, so that
none holds up who compiles it or looks for it. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from math import prod
from typing import Any, Final

import regex

from penstock.evals.comparison.bad_check import BadCheck

LONGEST_PATTERN: Final = 500
MOST_REPEATS: Final = 10_000
"""The counts of a pattern, multiplied: a pattern is written out that often when it is compiled."""

_COUNTS: Final = re.compile(r"\{(\d*),?(\d*)\}")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,59}")


def own_pattern(name: str, told: object, taken: Collection[str]) -> Any:
    """The pattern, whose searches take a `timeout`. Raises `BadCheck`."""
    if not _NAME.fullmatch(name) or name in taken:
        raise BadCheck(f"{name!r} is no name for a pattern, or a shipped rule's")
    if not isinstance(told, str) or not 0 < len(told) <= LONGEST_PATTERN:
        raise BadCheck(f"{name}: must be a regular expression of 1 to {LONGEST_PATTERN} characters")
    counts = [max(int(count or 0) for count in found) or 1 for found in _COUNTS.findall(told)]
    if prod(counts) > MOST_REPEATS:
        raise BadCheck(f"{name}: its counts come to more than {MOST_REPEATS:,}, multiplied")
    try:
        pattern = regex.compile(told)
        if pattern.search("", timeout=1.0):
            raise BadCheck(f"{name}: {told!r} finds the empty text: it would be found everywhere")
    except (regex.error, ValueError, OverflowError, RecursionError, TimeoutError) as error:
        if isinstance(error, BadCheck):
            raise
        raise BadCheck(f"{name}: {told!r} is no regular expression: {error}") from error
    return pattern
