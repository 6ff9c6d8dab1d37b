"""What the replicas of a node take: measured now and then, in a thread.

Reading it walks through every mapping of every process, so nobody is told what is newer than that,
but for the check before a start, which asks by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import NamedTuple, Protocol

from penstock.control.state.fleet.memory import ReplicaMemory
from penstock.control.supervision.clock import Clock


class GroupMemory(NamedTuple):
    """What a process and all that it started take; bytes."""

    machine: int = 0
    devices: int = 0


class MemoryReader(Protocol):
    """Measures processes. Called in any thread."""

    def groups(self, leaders: Collection[int]) -> Mapping[int, GroupMemory]:
        """Of each group that has one of these leaders and can be measured."""


class MemoryWatch:
    """Holds the newest figures. `processes`: pids of replicas by their ids."""

    def __init__(
        self,
        reader: MemoryReader,
        processes: Callable[[], Mapping[str, int]],
        clock: Clock,
        every: timedelta,
    ) -> None:
        self._every = every
        self._reader = reader
        self._processes = processes
        self._clock = clock
        self._latest: Mapping[str, ReplicaMemory] = {}

    async def run(self) -> None:
        """Measures for ever."""
        while True:
            await self.measured()
            await self._clock.sleep(self._every)

    async def measured(self) -> Mapping[str, ReplicaMemory]:
        """What each replica takes now."""
        pids = self._processes()
        found = await asyncio.to_thread(self._reader.groups, set(pids.values()))
        self._latest = {
            replica: ReplicaMemory(replica, found[pid].machine, found[pid].devices)
            for replica, pid in pids.items()
            if pid in found
        }
        return self._latest

    def latest(self) -> Collection[ReplicaMemory]:
        """What was measured last."""
        return self._latest.values()
