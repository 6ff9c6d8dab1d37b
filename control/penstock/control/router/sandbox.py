"""What a program costs when it goes wrong: its own process, and nothing else.

It has no secrets in its environment, so much memory, files and output, and ends where its event
loop stands still or its node agent is gone. What it may touch besides is in `confine.py`.
"""

from __future__ import annotations

import asyncio
import ctypes
import faulthandler
import io
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Final

MEMORY: Final = 512 << 20  # bytes that it may write to
ADDRESS_SPACE: Final = 8 << 30  # bytes; what is mapped and shared counts here alone
OPEN_FILES: Final = 256
FILE_SIZE: Final = 256 << 20  # bytes; longer than a log may get before the agent cuts it
OUTPUT_A_MINUTE: Final = 1 << 20  # bytes of its log
NICER: Final = 5
STANDSTILL: Final = 2.0  # seconds without a turn of the event loop
KEPT: Final = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
"""Of the environment."""

_PR_SET_PDEATHSIG: Final = 1
_STDERR: Final = 2
_DROPPED: Final = b"\nrouter: more output than a log takes: dropped for a minute\n"


def enter(parent: int) -> None:
    """Puts this process into its bounds; 0: it has no parent to die with."""
    if parent:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit(f"router: error: process {parent}, which started this one, is gone")
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    if len(kept) < len(os.environ):  # begin anew: what was there once can be read in /proc
        os.execve(sys.executable, sys.orig_argv, kept)
    # Processes are counted by user, not by parent: a limit of them would be a limit of replicas.
    for limit, most in (
        (resource.RLIMIT_DATA, MEMORY),
        (resource.RLIMIT_AS, ADDRESS_SPACE),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_FSIZE, FILE_SIZE),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(limit)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (most, most))
    os.nice(NICER)
    sys.stdout = sys.stderr = _Bounded()


class _Bounded(io.TextIOBase):
    """Writes to stderr, so much a minute, and drops the rest: printing never fails."""

    def __init__(self) -> None:
        self._left = OUTPUT_A_MINUTE
        self._until = 0.0

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return _STDERR

    def write(self, text: str) -> int:
        if monotonic() > self._until:
            self._left, self._until = OUTPUT_A_MINUTE, monotonic() + 60
        if self._left > 0:
            piece = text[: self._left].encode("utf-8", "replace")
            self._left -= len(piece)
            with suppress(OSError):  # a full disk, or a log at its limit
                os.write(_STDERR, piece if self._left > 0 else piece + _DROPPED)
        return len(text)


def end_if_it_stands_still() -> None:
    """Ends the process, with where it stood, unless it is called again in time. A thread of the
    interpreter watches, which takes no lock that a busy loop could hold."""
    faulthandler.dump_traceback_later(STANDSTILL, exit=True, file=_STDERR)


async def watch(stuck: Callable[[float], str], beats: int) -> None:
    """Ends the process where its loop stands still, or a program does not end when it is told to
    (`stuck`: for which request, after so many seconds). `beats`: a file whose time tells who looks
    at it from outside that the loop turns."""
    while not (request := stuck(STANDSTILL)):
        end_if_it_stands_still()
        os.utime(beats)
        await asyncio.sleep(STANDSTILL / 4)
    sys.stderr.write(f"router: error: the program goes on after request {request} has ended\n")
    os._exit(1)
