"""A clock that stands still until it is moved."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from tests.fakes.control_values import NOON


class ManualClock:
    """Sleepers wake when `advance` passes their time, never before."""

    def __init__(self) -> None:
        self._now = NOON
        self._stepped = timedelta()
        self._sleepers: list[tuple[datetime, asyncio.Event]] = []

    def now(self) -> datetime:
        return self._now

    def steady(self) -> datetime:
        return self._now - self._stepped

    def step_wall(self, by: timedelta) -> None:
        """Somebody sets the machine's clock; nothing else happens."""
        self._now += by
        self._stepped += by
        self._sleepers = [(until + by, wake) for until, wake in self._sleepers]

    def monotonic(self) -> float:
        return (self.steady() - NOON).total_seconds()

    async def sleep(self, duration: timedelta) -> None:
        sleeper = (self._now + duration, asyncio.Event())
        self._sleepers.append(sleeper)
        try:
            await sleeper[1].wait()
        finally:  # cancelled: time goes on without it
            self._sleepers = [each for each in self._sleepers if each is not sleeper]

    def advance(self, duration: timedelta) -> None:
        """Moves time on and wakes whoever slept until then."""
        self._now += duration
        for until, wake in self._sleepers:
            if until <= self._now:
                wake.set()
        self._sleepers = [each for each in self._sleepers if each[0] > self._now]

    def advance_to_next(self) -> timedelta:
        """Moves time on to when the first sleeper wakes; returns by how much."""
        step = min(until for until, _ in self._sleepers) - self._now
        self.advance(step)
        return step

    @property
    def sleepers(self) -> int:
        """How many wait for time to pass."""
        return len(self._sleepers)
