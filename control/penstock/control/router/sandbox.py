"""What a program costs when it goes wrong: its own process, and nothing else.

It has no secrets in its environment, so much memory, files and output, and ends where its event
loop stands still or its node agent is gone. What it may touch besides is in `confine.py`.
"""

from __future__ import annotations

import asyncio
import ctypes
import faulthandler
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import Final

from penstock.control.router import logs

MEMORY: Final = 512 << 20  # bytes that it may write to
ADDRESS_SPACE: Final = 8 << 30  # bytes; what is mapped and shared counts here alone
OPEN_FILES: Final = 256
FILE_SIZE: Final = 256 << 20  # bytes; longer than a log may get before the agent cuts it
NICER: Final = 5
STANDSTILL: Final = 2.0  # seconds without a turn of the event loop
KEPT: Final = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
"""Of the environment."""

_PR_SET_PDEATHSIG: Final = 1
_STDERR: Final = 2


def enter(parent: int) -> None:
    """Puts this process into its bounds; 0: it has no parent to die with."""
    if parent:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit(f"{logs.SAYS}process {parent}, which started this one, is gone")
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
    logs.begin()


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
    logs.tell_end(f"the program goes on after request {request} has ended")
    os._exit(1)
