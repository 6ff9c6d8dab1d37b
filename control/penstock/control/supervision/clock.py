"""What the control plane asks of time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Time, so that tests can move it."""

    def now(self) -> datetime:
        """Wall-clock time, in UTC."""

    def steady(self) -> datetime:
        """A time that passes evenly, in UTC: durations are measured by it, whatever happens to the
        wall clock. Near to `now` while nobody sets that."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment, never set back."""

    async def sleep(self, duration: timedelta) -> None:
        """Returns after the duration."""
