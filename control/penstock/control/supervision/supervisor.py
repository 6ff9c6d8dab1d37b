"""The loop that keeps a process running: start, stay with it to its end, pause, start again."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol, TypeVar

from penstock.control.errors import LaunchFailed

Started = TypeVar("Started")


class Life(Protocol[Started]):
    """What is particular about what is kept running; `Started` is one process of it."""

    async def start(self) -> Started:
        """Starts a process. Raises LaunchFailed."""

    async def accompany(self, started: Started) -> int | None:
        """Stays with a process to its end; returns its exit code, None if that is not known."""

    async def ended(self, exit_code: int | None, refusal: LaunchFailed | None) -> timedelta | None:
        """Takes note of an end, or of a start that was refused. Returns the pause before the next
        start, None for none; what it raises ends the loop."""

    async def pause(self, duration: timedelta) -> bool:
        """Waits before the next start; False, at once, if there is to be none after all."""


async def supervise(life: Life[Started], adopted: Started | None = None) -> None:
    """Lives through one process after another, beginning with the adopted one, until there is to
    be no next one. Cancelled, it leaves the process running."""
    started = adopted
    while True:
        exit_code, refusal = None, None
        try:
            if started is None:
                started = await life.start()
            exit_code = await life.accompany(started)
        except LaunchFailed as error:
            refusal = error
        started = None
        pause = await life.ended(exit_code, refusal)
        if pause is None or not await life.pause(pause):
            return
