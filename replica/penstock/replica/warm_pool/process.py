"""What a process of the pool is to the system: its descriptors, signals, environment, and the
command line by which others know it."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

LONGEST: Final = 16 << 10
"""Bytes that a command line may have which is written over the first one."""

_ARGUMENTS = slice(45, 47)  # first and last address: fields of /proc/<pid>/stat after the name
_STANDARD: Final = (0, 1, 2)
_LAST_BREATH: Final = 1.0  # seconds from a thread's end in Python to its end


def begin_again(room: Sequence[str], more: Mapping[str, str]) -> NoReturn:
    """Starts this program anew in this process, with words that take `LONGEST` bytes behind its
    own, and with more in its environment: libraries read some of it as they are loaded."""
    words = [sys.executable, *sys.orig_argv[1:], *room, "." * LONGEST]
    os.execve(sys.executable, words, {**os.environ, **more})


def write_command_line(words: Sequence[str]) -> None:
    """Has all others see these words as the process's command line. Raises `ValueError` for more
    than `LONGEST` bytes."""
    line = b"".join(word.encode() + b"\0" for word in words)
    if len(line) > LONGEST:
        raise ValueError(f"a command line of {len(line)} bytes")
    # What vLLM titles its processes by looks for the first command line when it is first used, and
    # takes it for the process's name.
    name = Path("/proc/self/comm")
    before = name.read_bytes().strip()
    with contextlib.suppress(ImportError):
        importlib.import_module("setproctitle").getproctitle()
    name.write_bytes(before)
    stat = Path("/proc/self/stat").read_text()
    first, last = (int(field) for field in stat[stat.rindex(")") + 2 :].split()[_ARGUMENTS])
    ctypes.memset(first, 0, last - first)
    ctypes.memmove(first, line, len(line))


def keep_only(descriptors: Iterable[int]) -> None:
    """Closes all descriptors but these and the standard ones."""
    kept = {*_STANDARD, *descriptors}
    for one in [int(name) for name in os.listdir("/proc/self/fd")]:
        if one not in kept:
            with contextlib.suppress(OSError):  # the one that listed them
                os.close(one)


def write_to(log: int) -> None:
    """Has stdout and stderr go there from now on."""
    for one in _STANDARD[1:]:
        os.dup2(log, one)
    os.close(log)


def take_environment(environment: Mapping[str, str]) -> None:
    """Replaces it as a whole."""
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # was found by the other one's TMPDIR


def end_on_signals() -> None:
    """SIGTERM and SIGINT end the process as if it had no Python in it."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def is_of_one_thread() -> bool:
    """By the system's count. One that Python has joined may take a moment to be gone there."""
    deadline = time.monotonic() + _LAST_BREATH
    while more := len(os.listdir("/proc/self/task")) > 1:
        if time.monotonic() > deadline:
            break
        time.sleep(_LAST_BREATH / 100)
    return not more


def holds_gpu() -> bool:
    """Whether it holds a GPU's device: what CUDA makes there does not survive a fork."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}").startswith("/dev/nvidia"):
                return True
    return False


def forget_randomness() -> None:
    """Two forks of one process would draw the same numbers."""
    random.seed()
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()
    if torch := sys.modules.get("torch"):
        torch.seed()
