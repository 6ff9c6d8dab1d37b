"""This machine's resources."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil

from penstock.v1 import nodes_pb2

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
