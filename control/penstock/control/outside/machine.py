"""This machine: its resources, and the lock on a data directory."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

import psutil

from penstock.control.errors import CannotStart, Code
from penstock.v1 import nodes_pb2

CGROUP = Path("/sys/fs/cgroup")
NVIDIA_GPUS = Path("/proc/driver/nvidia/gpus")
CGROUP = Path("/sys/fs/cgroup")


def read_resources() -> nodes_pb2.NodeResources:
    """What the machine has, and what of it is free now."""
    memory = psutil.virtual_memory()
    return nodes_pb2.NodeResources(
        cpus=psutil.cpu_count() or 1,
        memory_bytes=memory.total,
        memory_available_bytes=available_memory(),
        gpus=len(list(NVIDIA_GPUS.iterdir())) if NVIDIA_GPUS.is_dir() else 0,
    )


def available_memory() -> int:
    """Bytes that new processes can have: the machine's, or less where a container limits us."""
    available = psutil.virtual_memory().available
    with suppress(OSError, ValueError):  # no cgroup v2, or no limit ("max")
        limit = int((CGROUP / "memory.max").read_text())
        used = int((CGROUP / "memory.current").read_text())
        statistics = (CGROUP / "memory.stat").read_text().split()
        page_cache = int(statistics[statistics.index("file") + 1])  # given up when it is needed
        available = min(available, max(0, limit - used + page_cache))
    return available


def idle_cpu_seconds() -> float:
    """Time that cores had nothing to do since the machine started, all together."""
    return float(psutil.cpu_times().idle)


class DirectoryLock:
    """Holds a lock file from its making until `release` or the end of the process.

    Raises `data-dir-in-use`, which names the process that holds it, and `CannotStart` where nothing
    can be written.
    """

    def __init__(self, path: Path, *, what: str) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = _opened(path)
        except OSError as error:
            raise CannotStart(
                f"cannot write to the data directory {path.parent}: {error.strerror};"
                " check its rights, or choose another with --data-dir"
            ) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip()
            os.close(self._fd)
            raise CannotStart(
                f"{what} already runs on {path.parent} (pid {holder or 'unknown'}):"
                " stop it, or choose another --data-dir",
                Code.DATA_DIR_IN_USE,
            ) from error
        with suppress(OSError):  # a disk that takes nothing: the lock holds all the same
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Gives the lock back."""
        os.close(self._fd)


def _opened(path: Path) -> int:
    """To write to, or to lock at least, where there is a file that cannot be written."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:
        if not path.is_file():
            raise
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
