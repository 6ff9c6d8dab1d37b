"""Pings are sent beside each other, and the first look around is complete."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta

from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.fleet.health import PINGS_PER_SECOND, HealthManager
from penstock.control.state.cluster import ClusterView, Gateway, GatewayReport, GatewayState
from penstock.control.state.fleet.liveness import ObservedNode
from penstock.control.state.fleet.pings import Ping
from penstock.control.state.fleet.replica import (
    Evidence,
    NodeState,
    Replica,
    ReplicaAddress,
    ReplicaState,
    Resources,
)
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import PATIENCE, deployment, node, replica, report, spec
from tests.fakes.control_waiting import eventually

SECOND = timedelta(seconds=1)


@dataclass
class ScriptedPinger:
    """Answers by address; never, where no answer is written down."""

    answers: dict[str, Ping] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    generating: set[str] = field(default_factory=set)
    checked: list[str] = field(default_factory=list)

    async def ping(self, replica: ReplicaAddress) -> Ping:
        address = replica.address
        self.asked.append(address)
        if address not in self.answers:
            await asyncio.Event().wait()
        return self.answers[address]

    async def deep_check(self, replica: ReplicaAddress) -> bool:
        self.checked.append(replica.address)
        return replica.address in self.generating


@dataclass
class World:
    """A health manager and everything around it."""

    pinger: ScriptedPinger = field(default_factory=ScriptedPinger)
    clock: ManualClock = field(default_factory=ManualClock)
    node_state: NodeState = NodeState.READY
    deep_every: timedelta = 10 * SECOND

    def __post_init__(self) -> None:
        self.cluster = ClusterStore(MemoryStore(), self.clock)
        self.health = HealthManager(
            self.cluster,
            self.pinger,
            self.clock,
            PATIENCE,
            ping_every=SECOND,
            deep_every=self.deep_every,
        )

    @property
    def view(self) -> ClusterView:
        return self.cluster.view()

    async def hold(self, *replicas: Replica) -> None:
        observed = ObservedNode(self.clock.steady(), Resources())
        self.cluster.liveness.nodes[node().id] = observed

        def step(view: ClusterView) -> ClusterView:
            view = view.with_node(node(state=self.node_state))
            for one in replicas:
                view = view.with_replica(one)
            return view

        await self.cluster.observe(step, "test")

    def evidence(self) -> dict[str, Evidence]:
        return {r.id: r.evidence for r in self.view.replicas.values()}


async def test_the_first_look_around_judges_every_replica_that_should_answer() -> None:
    world = World(node_state=NodeState.EXPECTED)
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


async def test_a_heartbeat_is_remembered_beside_the_view_and_forgotten_with_the_node() -> None:
    world = World()
    await world.health.node_registered(node().facts, [])
    world.clock.advance(SECOND)
    used = Resources(memory_available_bytes=5)
    await world.health.node_observed(node().id, used, [], instance=node().facts.instance)
    live = world.cluster.liveness
    assert dict(live.known.nodes) == {node().id: ObservedNode(world.clock.steady(), used)}
    await world.cluster.observe(lambda view: view.without_node(node().id), "test")
    live.keep(world.view, world.clock.steady(), refused_for=SECOND)
    assert not live.known.nodes


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


async def test_a_replica_that_generates_nothing_is_found_by_deep_checks_now_and_then() -> None:
    world = World()
    await world.hold(replica("good"), replica("wedged"))
    world.pinger.answers = {f"{name}:9000": Ping.ANSWERED for name in ("good", "wedged")}
    world.pinger.generating = {"good:9000"}
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(world.health.run())
        for _ in range(25):

            async def asleep() -> bool:
                return world.clock.sleepers == 1

            await eventually(asleep, "a round of pings")
            world.clock.advance(SECOND)

        async def judged() -> bool:
            return world.evidence() == {"good": Evidence.ANSWERS, "wedged": Evidence.WEDGED}

        await eventually(judged, "the wedged one is found")
        task.cancel()
    assert world.pinger.checked.count("wedged:9000") == 2


async def test_a_replica_that_a_provider_answers_for_is_not_checked_deeply() -> None:
    world = World()
    world.pinger.answers = {"ours:9000": Ping.ANSWERED, "theirs:9000": Ping.ANSWERED}
    template = replace(spec().template, engine="canned", engine_args=(("text", "Sorry."),))
    managed = deployment(replace(spec(name="sorry"), template=template))
    await world.cluster.observe(lambda view: view.with_deployment(managed), "test")
    await world.hold(replica("ours"), replica("theirs", deployment="sorry"))
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(world.health.run())

        async def checked_twice() -> bool:
            world.clock.advance(SECOND)
            return world.pinger.checked.count("ours:9000") == 2

        await eventually(checked_twice, "deep checks")
        task.cancel()
    assert set(world.pinger.checked) == {"ours:9000"}


async def test_a_step_of_the_wall_clock_makes_no_node_silent() -> None:
    world = World()
    await world.hold()
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(world.health.run())
        for step in (timedelta(minutes=1), timedelta(hours=-2), SECOND):

            async def asleep() -> bool:
                return world.clock.sleepers == 1

            await eventually(asleep, "a sweep")
            world.clock.step_wall(step)
            world.clock.advance(SECOND)
        await eventually(asleep, "a sweep")
        task.cancel()
    assert world.view.nodes[node().id].state is NodeState.READY


async def test_a_restarted_head_waits_for_the_nodes_that_it_knows_but_not_for_ever() -> None:
    world = World(node_state=NodeState.EXPECTED)
    await world.hold()
    await world.health.await_expected(timedelta(milliseconds=1))
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(world.health.await_expected(timedelta(seconds=60)))
        await world.health.node_registered(node("n9").facts, [])  # wakes it, and is not the one
        assert not waiting.done()
        await world.health.node_registered(node().facts, [])


async def test_a_deep_check_that_failed_counts_against_that_process_alone() -> None:
    world = World()
    world.pinger.answers = {"r:9000": Ping.ANSWERED, "r:9001": Ping.ANSWERED}
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(world.health.run())
        for number, address in enumerate(("r:9000", "r:9001"), start=1):
            status = report("r", address=address, pid=number)
            await world.hold(replace(replica("r"), status=status))

            async def checked(address: str = address) -> bool:
                world.clock.advance(SECOND)
                return address in world.pinger.checked

            await eventually(checked, f"{address} is checked")
        pings = len(world.pinger.asked)

        async def pinged() -> bool:
            world.clock.advance(SECOND)
            return len(world.pinger.asked) > pings + 1

        await eventually(pinged, "what the check came to is known")
        task.cancel()
    assert world.view.replicas[replica("r").id].evidence is not Evidence.WEDGED


async def test_a_replica_that_a_gateway_doubts_is_checked_deeply_soon_and_left_alone() -> None:
    world = World(deep_every=timedelta(hours=1))
    world.pinger.answers = {"a:9000": Ping.ANSWERED, "b:9000": Ping.ANSWERED}
    world.pinger.generating = {"a:9000"}
    await world.hold(replica("a"), replica("b"))
    doubting = GatewayReport(world.clock.now(), 1, doubts=(("a", "no_progress", 5000),))
    gateway = Gateway("gw-1", GatewayState.REMOTE, report=doubting, reporting=True)
    world.cluster.liveness.gateways["gw-1"] = world.clock.steady() + timedelta(minutes=1)
    await world.cluster.observe(lambda view: view.with_gateway(gateway), "test")
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(world.health.run())

        async def checked_twice() -> bool:
            world.clock.advance(SECOND)
            return len(world.pinger.checked) == 2

        await eventually(checked_twice, "deep checks")
        task.cancel()
    assert world.pinger.checked == ["a:9000", "a:9000"]
    assert world.clock.monotonic() >= 20
    assert set(world.evidence().values()) == {Evidence.ANSWERS}


async def test_replicas_in_doubt_take_no_pings_from_the_others_for_ever() -> None:
    world = World()
    many = [replica(f"a{number:03}") for number in range(3 * PINGS_PER_SECOND)]
    await world.hold(*many, replica("z"))
    world.pinger.answers = {f"{r.id}:9000": Ping.TIMED_OUT for r in many}
    world.pinger.answers["z:9000"] = Ping.ANSWERED
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(world.health.run())

        async def reached() -> bool:
            world.clock.advance(SECOND)
            return "z:9000" in world.pinger.asked

        await eventually(reached, "the last one is asked")
        task.cancel()
    assert world.clock.monotonic() < 10
