"""How long each part of a replica's start took, for whoever wants to know what to cut."""

from __future__ import annotations

import os
import time
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_STARTED_AT = 19  # field of /proc/<pid>/stat, counted from the one after the command's name


class Stages:
    """The parts that have ended, in order. Each begins where the one before ended.

    One thread tells of an end at a time; `told` may be called from any.
    """

    def __init__(self, first: str, ms: int) -> None:
        """`first` has ended just now, after `ms` milliseconds."""
        self._ended = [(first, ms)]
        self._since = time.monotonic()

    @classmethod
    def of_program(cls) -> Stages:
        """Of a process that was started: its first part, "spawn", is what came before Python code
        of ours could run."""
        stat = Path("/proc/self/stat").read_text()
        started = int(stat[stat.rindex(")") + 2 :].split()[_STARTED_AT]) / _TICKS
        return cls("spawn", round((time.clock_gettime(time.CLOCK_BOOTTIME) - started) * 1000))

    @classmethod
    def of_claim(cls, claimed_at_ms: int) -> Stages:
        """Of a member of a warm pool, claimed at this time of the machine's monotonic clock."""
        return cls("claim", round(time.monotonic() * 1000) - claimed_at_ms)

    def ended(self, name: str) -> None:
        """This part ends now."""
        now = time.monotonic()
        self._ended.append((name, round((now - self._since) * 1000)))
        self._since = now

    def told(self) -> dict[str, int]:
        """Name to milliseconds."""
        return dict(self._ended)
