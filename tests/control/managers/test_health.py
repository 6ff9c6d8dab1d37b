"""Pings are sent beside each other, and the first look around is complete."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

from penstock.control.managers.health import HealthManager
from penstock.control.managers.keeper import Keeper
from penstock.control.state.cluster import Cluster, ClusterView
from penstock.control.state.health import Ping
from penstock.control.state.replica import Evidence, NodeState, Replica, ReplicaState
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import PATIENCE, node, replica
from tests.fakes.control_waiting import eventually

SECOND = timedelta(seconds=1)


@dataclass
class ScriptedPinger:
    """Answers by address; never, where no answer is written down."""

    answers: dict[str, Ping] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def ping(self, address: str) -> Ping:
        self.asked.append(address)
        if address not in self.answers:
            await asyncio.Event().wait()
        return self.answers[address]


@dataclass
class World:
    """A health manager and everything around it."""

    pinger: ScriptedPinger = field(default_factory=ScriptedPinger)
    clock: ManualClock = field(default_factory=ManualClock)

    def __post_init__(self) -> None:
        self.keeper = Keeper(Cluster(), MemoryStore(), self.clock)
        self.health = HealthManager(
            self.keeper, self.pinger, self.clock, PATIENCE, ping_every=SECOND
        )

    @property
    def view(self) -> ClusterView:
        return self.keeper.cluster.view()

    async def hold(self, *replicas: Replica) -> None:
        def step(view: ClusterView) -> ClusterView:
            view = view.with_node(node())
            for one in replicas:
                view = view.with_replica(one)
            return view

        await self.keeper.observe(step, "test")

    def evidence(self) -> dict[str, Evidence]:
        return {r.id: r.evidence for r in self.view.replicas.values()}


async def test_the_first_look_around_judges_every_replica_that_should_answer() -> None:
    world = World()
    await world.hold(
        replica("a"),
        replica("b"),
        replica("c", ReplicaState.DRAINING),
        replica("d", ReplicaState.STARTING),
        replica("e", ReplicaState.BACKOFF),
    )
    answers = {"a": Ping.ANSWERED, "b": Ping.REFUSED, "c": Ping.ANSWERED}
    world.pinger.answers = {f"{name}:9000": answer for name, answer in answers.items()}
    await world.health.check_remembered()
    assert world.evidence() == {
        "a": Evidence.ANSWERS,
        "b": Evidence.GONE,
        "c": Evidence.ANSWERS,
        "d": Evidence.NONE,
        "e": Evidence.NONE,
    }


async def test_a_replica_that_hangs_holds_up_no_ping_but_its_own() -> None:
    world = World()
    await world.hold(replica("a"), replica("hangs"))
    world.pinger.answers = {"a:9000": Ping.ANSWERED}
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(world.health.run())
        for rounds in (1, 2, 3):

            async def pinged(rounds: int = rounds) -> bool:
                return world.pinger.asked.count("a:9000") == rounds and world.clock.sleepers == 1

            await eventually(pinged, f"{rounds} rounds of pings")
            world.clock.advance(SECOND)
        task.cancel()
    assert world.pinger.asked.count("hangs:9000") == 1


async def test_time_alone_makes_a_node_silent() -> None:
    world = World()
    await world.hold()
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(world.health.run())
        for state, wait in ((NodeState.READY, 1), (NodeState.SILENT, 6), (NodeState.LOST, 30)):

            async def in_state(state: NodeState = state) -> bool:
                return world.view.nodes[node().id].state is state and world.clock.sleepers == 1

            world.clock.advance(timedelta(seconds=wait))
            await eventually(in_state, f"the node is {state}")
        task.cancel()
