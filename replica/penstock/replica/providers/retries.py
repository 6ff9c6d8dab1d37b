"""When a failed attempt is made again: before anything of the answer came, and soon. Pure."""

from __future__ import annotations

import email.utils
import math
import random
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from penstock.replica.providers.values import ProviderFailed

_FIRST_S: Final = 0.25
_LONGEST_S: Final = 5.0
_LONGEST_TOLD_S: Final = 1.0
"""Who was told to wait for longer lets the client wait, who may know another way."""
_MOST_MS: Final = 86_400_000


def pause(attempt: int, failure: ProviderFailed, dice: random.Random) -> float | None:
    """Seconds before the attempt after number `attempt`, the first being 0; none: not at all. Who
    takes no more for now is asked once more: clients ask again, too."""
    told = failure.failed.retry_after_ms / 1000
    throttled = failure.failed.status == 429
    if not failure.again or told > _LONGEST_TOLD_S or (attempt and (throttled or told)):
        return None
    usual = min(_LONGEST_S, _FIRST_S * 2**attempt)
    return max(told, 0.0) + dice.uniform(usual / 2, usual)


def told_wait_ms(headers: Mapping[str, str], now: datetime) -> int:
    """Milliseconds that the headers of a refusal ask to wait for, as a number or as a date; 0: they
    do not say."""
    for name, unit in (("retry-after-ms", 1), ("retry-after", 1000)):
        if (told := headers.get(name)) is not None:
            wait = _number(told) * unit if unit == 1 else _seconds(told, now) * unit
            if math.isfinite(wait) and wait > 0:
                return int(min(wait, _MOST_MS))
    return 0


def _seconds(text: str, now: datetime) -> float:
    seconds = _number(text)
    if not math.isnan(seconds):
        return seconds
    try:
        return (email.utils.parsedate_to_datetime(text) - now).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
