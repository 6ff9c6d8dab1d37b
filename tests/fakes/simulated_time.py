"""Time that passes only when nothing is left to do: an event loop, and clocks that follow it."""

from __future__ import annotations

import asyncio
import selectors
from datetime import datetime, timedelta

from tests.fakes.control_values import NOON


class SimulatedTimeLoop(asyncio.SelectorEventLoop):
    """Jumps to the next timer instead of waiting for it. Hears no sockets and no signals."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        return self._now

    def jump(self, seconds: float) -> None:
        """So much time has passed."""
        self._now += seconds


class _JumpingSelector(selectors.SelectSelector):
    def __init__(self, loop: SimulatedTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everybody waits for somebody else, for ever"
        self._loop.jump(max(timeout, 0))
        return []


class WallClock:
    """The time on the wall of a machine, which somebody may set."""

    def __init__(self, loop: SimulatedTimeLoop) -> None:
        self._loop = loop
        self._offset = timedelta()

    def now(self) -> datetime:
        """What it shows."""
        return NOON + timedelta(seconds=self._loop.time()) + self._offset

    def step(self, by: timedelta) -> None:
        """Somebody sets it."""
        self._offset += by


class SimulatedClock:
    """The clock of one process: as SystemClock, on a simulated machine."""

    def __init__(self, loop: SimulatedTimeLoop, wall: WallClock) -> None:
        self._loop, self._wall = loop, wall
        self._made_at, self._made = wall.now(), loop.time()

    def now(self) -> datetime:
        return self._wall.now()

    def steady(self) -> datetime:
        return self._made_at + timedelta(seconds=self._loop.time() - self._made)

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, duration: timedelta) -> None:
        await asyncio.sleep(duration.total_seconds())
