"""The operator's patterns of what no answer may hold. Pure.

The head may not know the comparison, which looks for them: what it takes here that takes there, too
(a test holds one against the other).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import prod
from typing import Final

from penstock.control.errors import InvalidInput

MOST_GUARDRAILS: Final = 16
LONGEST_PATTERN: Final = 500
MOST_REPEATS: Final = 10_000
"""The counts of a pattern, multiplied: it is written out that often when it is compiled."""
SHIPPED: Final = (
    *("e-mail address", "payment card", "IBAN", "US social security number", "phone number"),
)
"""Names of those that are looked for anyway."""

_COUNTS: Final = re.compile(r"\{(\d*),?(\d*)\}")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,59}")


def check_guardrails(patterns: Iterable[tuple[str, str]]) -> None:
    """Raises InvalidInput, with its name, for one that nobody could look for."""
    found = list(patterns)
    if len(found) > MOST_GUARDRAILS:
        raise InvalidInput(f"guardrails has {len(found)}: there may be {MOST_GUARDRAILS}")
    for name, pattern in found:
        if not _NAME.fullmatch(name):
            raise InvalidInput(
                f"guardrails has {name!r}: a name must be 1 to 60 of letters, digits, space, '.', "
                "'_' and '-', beginning with a letter or digit"
            )
        if name in SHIPPED:
            raise InvalidInput(f"guardrails has {name!r}, which is looked for anyway")
        if why := _fault(pattern):
            raise InvalidInput(f"guardrails.{name} is {pattern[:LONGEST_PATTERN]!r}: {why}")


def _fault(pattern: str) -> str:
    """What is wrong with it; empty: nothing."""
    if not 0 < len(pattern) <= LONGEST_PATTERN:
        return f"it must be a regular expression of 1 to {LONGEST_PATTERN} characters"
    counts = [max(int(count or 0) for count in found) or 1 for found in _COUNTS.findall(pattern)]
    if prod(counts) > MOST_REPEATS:
        return f"its counts come to more than {MOST_REPEATS:,}, multiplied"
    import regex  # for this alone, and a process has started by the time that it takes

    try:
        finds_nothing = regex.compile(pattern).search("", timeout=1.0)
    except (regex.error, ValueError, OverflowError, RecursionError, TimeoutError) as error:
        return f"it is no regular expression: {error}"
    return "it finds the empty text, which is everywhere" if finds_nothing else ""
