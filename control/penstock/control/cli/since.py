"""`--since` of verbs: a time, or how long ago it was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from penstock.control.errors import invalid_setting

HELP: Final = "Such as 30m, 2h or 7d, or a time: 2026-01-31T12:00:00Z."
LONGEST_BACK: Final = timedelta(days=366)  # nothing is kept for so long
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def since(said: str) -> str:
    """A time as the admin API takes it; one without an offset is this machine's. Raises
    `invalid-setting`."""
    number, unit = said[:-1], said[-1:]
    if number.isdecimal() and unit in _UNITS and len(number) <= 6:
        back = timedelta(**{_UNITS[unit]: int(number)})
        return (datetime.now(UTC) - min(back, LONGEST_BACK)).isoformat()
    try:
        return datetime.fromisoformat(said).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        raise invalid_setting(
            f"--since is {said!r}: it must be such as 30m, 2h or 7d, or a time such as "
            "2026-01-31T12:00:00Z"
        ) from None
