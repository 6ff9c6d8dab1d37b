"""Who is to blame for a warm process that came to nothing, and what the next one is."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from penstock.control.node_agent.replica_starts import ReplicaStarts
from penstock.control.node_agent.warm_policy import PATIENCE
from penstock.control.node_agent.warm_pool import Cold
from penstock.control.state.fleet.replica import ReplicaStart
from penstock.control.supervision.process import Process
from penstock.v1 import nodes_pb2
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_launcher import FakeLauncher, FakeProcess


class Pool:
    """Gives a process to whoever asks, and takes down what it is told."""

    def __init__(self) -> None:
        self.patience = PATIENCE
        self.told: list[str] = []

    async def claim(self, order: Any, runs: Any) -> Process:
        runs(process := FakeProcess(500, []))
        return process

    def went_cold(self, engine: str, reason: str) -> Cold:
        return Cold(reason)

    def worked(self) -> None:
        self.told.append("worked")

    def failed(self, why: str) -> None:
        self.told.append(why)


class World:
    """A replica's starts on a node whose memory is enough."""

    def __init__(self, tmp_path: Path) -> None:
        self.pool = Pool()
        needs: Any = SimpleNamespace(
            pool=self.pool,
            launcher=FakeLauncher(),
            clock=ManualClock(),
            command=lambda spec: ["replica"],
            environment=lambda spec: {},
            timings=SimpleNamespace(memory_looks=1, memory_again_after=timedelta(0)),
            memory=self,
        )
        self.starts = ReplicaStarts(needs, tmp_path / "r.log")

    async def refusal(self, spec: nodes_pb2.ReplicaSpec) -> str:
        return ""

    async def pause(self, duration: timedelta) -> bool:
        return True

    async def kind(self) -> str:
        """Of the next process."""
        kinds: list[ReplicaStart] = []
        spec = nodes_pb2.ReplicaSpec(replica_id="r-1", engine="vllm")
        await self.starts.start(spec, lambda process, start: kinds.append(start), self.pause)
        return kinds[0].kind


async def test_a_warm_one_that_ends_is_the_pools_fault_where_a_cold_one_is_ready(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    assert await world.kind() == "warm"
    assert world.starts.forgives("it died")
    assert world.pool.told == []
    assert await world.kind() == "cold"
    world.starts.ready()
    assert world.pool.told == ["it died"]
    assert await world.kind() == "warm"
    world.starts.ready()
    assert world.pool.told == ["it died", "worked"]


async def test_a_replica_that_ends_warm_and_cold_is_no_fault_of_the_pool_and_forgiven_once(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    kinds, forgiven = [], []
    for _ in range(4):
        kinds.append(await world.kind())
        forgiven.append(world.starts.forgives("it died"))
    assert kinds == ["warm", "cold", "warm", "cold"]
    assert forgiven == [True, False, False, False]
    assert world.pool.told == []
