"""Moments as people say them: a time with its zone, or how long ago. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from penstock.control.errors import InvalidInput

SHAPE: Final = "RFC 3339, such as 2026-01-31T12:00:00Z, or how long ago, such as 30m, 2h or 7d"
_UNITS: Final[Mapping[str, str]] = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_AGO: Final = re.compile(r"([0-9]{1,6})([smhd])")
_LONGEST: Final = timedelta(days=366)  # nothing that is asked for so is kept for so long


def moment_said(name: str, text: str, now: datetime) -> datetime:
    """The moment that is said. Raises `InvalidInput`, which names it so."""
    if ago := _AGO.fullmatch(text):
        back = timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return now - min(back, _LONGEST)
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is None:
            raise ValueError("it has no zone")
        return at
    except ValueError:
        raise InvalidInput(f"{name} is {text!r}: it must be {SHAPE}") from None
