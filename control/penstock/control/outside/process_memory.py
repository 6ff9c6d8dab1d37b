"""What processes take: of this machine's memory, by its kernel, and of accelerators, by NVML."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from penstock.control.node_agent.devices import NoDevices
from penstock.control.node_agent.memory_watch import GroupMemory

PSS = re.compile(rb"^Pss: +(\d+) kB$", re.MULTILINE)
PROC = Path("/proc")


class DeviceProcesses(Protocol):
    """Knows who uses accelerators."""

    def memory_of_processes(self) -> Mapping[int, int]:
        """Bytes of all accelerators, by pid. Raises `NoDevices`."""


class ProcessMemory:
    """A `MemoryReader`. Pages that processes share count by how many share them (PSS)."""

    def __init__(self, devices: DeviceProcesses | None) -> None:
        self._devices = devices

    def groups(self, leaders: Collection[int]) -> Mapping[int, GroupMemory]:
        """Of each group with a process that could be read."""
        if not leaders:
            return {}
        machine, devices = Counter[int](), Counter[int]()
        used = self._on_devices()
        for pid, group in _members(leaders):
            with suppress(OSError):
                found = PSS.search((PROC / str(pid) / "smaps_rollup").read_bytes())
                machine[group] += int(found[1]) << 10 if found else 0
                devices[group] += used.get(pid, 0)
        return {group: GroupMemory(machine[group], devices[group]) for group in machine}

    def _on_devices(self) -> Mapping[int, int]:
        with suppress(NoDevices):
            return self._devices.memory_of_processes() if self._devices else {}
        return {}


def _members(leaders: Collection[int]) -> Iterator[tuple[int, int]]:
    """Processes of these groups, and which."""
    for entry in os.listdir(PROC):
        if entry.isdigit():
            with suppress(OSError):
                group = os.getpgid(int(entry))
                if group in leaders:
                    yield int(entry), group
