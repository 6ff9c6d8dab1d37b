"""When a failed attempt is made again: before anything of the answer came, and soon. Pure."""

from __future__ import annotations

import random
from typing import Final

from penstock.replica.providers.values import ProviderFailed

_FIRST_S: Final = 0.25
_LONGEST_S: Final = 5.0
"""Longer than this nobody waits here: the gateway may know another way."""


def pause(attempt: int, failure: ProviderFailed, dice: random.Random) -> float | None:
    """Seconds before the attempt after number `attempt`, the first being 0; none: not at all."""
    if not failure.again:
        return None
    asked = failure.failed.retry_after_ms / 1000
    if asked > _LONGEST_S:
        return None
    usual = min(_LONGEST_S, _FIRST_S * 2**attempt)
    return max(asked, 0.0) + dice.uniform(usual / 2, usual)


__all__ = ["pause"]
