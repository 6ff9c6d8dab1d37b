"""Real time. The only module that reads the machine's clock."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta


class SystemClock:
    """The machine's clock; users declare the part of it that they need as their own Protocol."""

    def __init__(self) -> None:
        self._made_at = datetime.now(UTC)
        self._made = time.monotonic()

    def now(self) -> datetime:
        """Wall-clock time, in UTC: for records and for what other machines see."""
        return datetime.now(UTC)

    def steady(self) -> datetime:
        """Wall-clock time of this clock's making, plus what has passed since."""
        return self._made_at + timedelta(seconds=time.monotonic() - self._made)

    def monotonic(self) -> float:
        """Seconds since some fixed moment, never set back: for measuring durations."""
        return time.monotonic()

    async def sleep(self, duration: timedelta) -> None:
        """Returns after the duration."""
        await asyncio.sleep(duration.total_seconds())
