"""Whether a router program's process does: it is heard, and leaves the machine to others."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

_PROBE: Final = b"\0" * 4096


@dataclass(frozen=True, slots=True)
class ProgramBounds:
    """What a program's process is held to from outside."""

    silence: timedelta = timedelta(seconds=10)  # its event loop says each half second that it turns
    cores: float = 0.9  # one that takes more answers late: raise for a program of several threads
    window: timedelta = timedelta(seconds=30)  # over which that is taken
    pause: timedelta = timedelta(seconds=60)  # before one that took more is started again


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a process was ended, and how long there is none then."""

    why: str
    pause: timedelta = timedelta()


class Vitals:
    """What is known of one process from look to look. Pure: `now` is monotonic seconds, `beat`
    changes while its event loop turns, `cpu` is the seconds of CPU that it has taken."""

    def __init__(self, bounds: ProgramBounds, now: float, cpu: float) -> None:
        self._bounds = bounds
        self._beat = 0
        self._turned = self._from = now
        self._cpu = cpu

    def fault(self, now: float, beat: int, cpu: float) -> Fault | None:
        """What it is to be ended for; None: it does."""
        bounds = self._bounds
        if beat != self._beat:
            self._beat, self._turned = beat, now
        silent, passed = now - self._turned, now - self._from
        if silent > bounds.silence.total_seconds():
            return Fault(f"it was not heard for {silent:.0f} s: it was stopped, or stood still")
        if passed < bounds.window.total_seconds():
            return None
        took = (cpu - self._cpu) / passed
        self._from, self._cpu = now, cpu
        if took <= bounds.cores:
            return None
        most = f"{bounds.cores:g} at most"
        return Fault(f"it took {took:.2f} cores for {passed:.0f} s, {most}", bounds.pause)


def beat_of(file: Path) -> int:
    """What a process renews as long as its event loop turns; 0: there is no such file."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def unwritable(*folders: Path) -> str:
    """Why nothing can be written to one of these; empty: something can. What a process says of a
    full disk is lost on it."""
    for folder in folders:
        try:
            file, name = tempfile.mkstemp(dir=folder)
        except OSError as error:
            return f"{folder} cannot be written: {error.strerror}"
        try:
            os.write(file, _PROBE)
        except OSError as error:
            return f"{folder} cannot be written: {error.strerror}"
        finally:
            os.close(file)
            os.unlink(name)
    return ""
