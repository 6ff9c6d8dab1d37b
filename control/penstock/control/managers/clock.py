"""What the managers ask of time."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from penstock.control.supervision import clock


class Clock(clock.Clock, Protocol):
    """Time as the managers see it: they measure what must not jump with the wall clock, too."""

    def steady(self) -> datetime:
        """A time that passes evenly, in UTC: durations are measured by it, whatever happens to the
        wall clock. Near to `now` while nobody sets that."""
