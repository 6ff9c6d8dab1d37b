"""What the kernel offers to leave no process behind: Linux only.

A subreaper inherits its orphaned descendants instead of init, so it can find and end them all; a
process that follows its parent is told when the parent dies, however it dies.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Collection
from contextlib import suppress

import psutil

from penstock.control.errors import CannotStart

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
POLL_SECONDS = 0.02


def adopt_orphans() -> None:
    """From now on, orphans among our descendants become our children."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def stop_with_parent(parent: int) -> None:
    """Gets us a SIGINT when the parent dies: the end of us and of all that we started; 0: we go on
    without one. Raises `CannotStart` if it is dead already."""
    if not parent:
        return
    _prctl(PR_SET_PDEATHSIG, signal.SIGINT)
    if os.getppid() != parent:
        raise CannotStart(f"process {parent}, which started this one, is gone")


def descendants() -> list[psutil.Process]:
    """Every living process below this one."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def reap_orphans(ours: Collection[int]) -> None:
    """Buries dead children that nobody waits for; `ours` are waited for elsewhere."""
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess, ChildProcessError):
            if child.pid not in ours and child.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(child.pid, os.WNOHANG)


def kill_descendants(ours: Collection[int], *, seconds: float) -> None:
    """Ends everything below this process; blocks until nothing is left or the time is over."""
    deadline = time.monotonic() + seconds
    while (left := descendants()) and time.monotonic() < deadline:
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        time.sleep(POLL_SECONDS)
    reap_orphans(ours)  # those that were dead when the loop looked for the living


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}, {value}): {os.strerror(number)}")
