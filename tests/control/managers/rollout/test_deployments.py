"""The loop carries plans out, and repeats what did not work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count

from penstock.control.errors import NodeUnreachable, ReplicaRefused
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.rollout.deployments import LOOK_AGAIN, DeploymentManager
from penstock.control.placement.placement import ReplicaOrder
from penstock.control.state.cluster import ClusterView, Published
from penstock.control.state.fleet.replica import (
    KeptAdapter,
    NodeFacts,
    ReplicaId,
    ReplicaState,
    ReplicaStatus,
)
from penstock.control.state.rollout.deployment import created
from penstock.control.state.rollout.handing_over import MOVING
from penstock.control.state.routing.limits import Limits
from penstock.control.store.store import Author
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import DEADLINES, MINI, NOON, UID, contradict, node, report, spec
from tests.fakes.control_waiting import eventually


@dataclass
class ScriptedPlacement:
    """Raises what `errors` has left, then obeys."""

    errors: list[Exception] = field(default_factory=list)
    started: list[ReplicaOrder] = field(default_factory=list)
    stopped: list[ReplicaId] = field(default_factory=list)
    kept: list[tuple[ReplicaId, tuple[KeptAdapter, ...], tuple[str, ...]]] = field(
        default_factory=list
    )

    drains: list[timedelta] = field(default_factory=list)  # that they were to get

    async def start(self, node: NodeFacts, order: ReplicaOrder) -> ReplicaStatus:
        self.started.append(order)
        if self.errors:
            raise self.errors.pop(0)
        return report(order.replica_id, ReplicaState.STARTING, digest=order.template_digest)

    async def stop(
        self, node: NodeFacts, replica_id: ReplicaId, drain: timedelta, *, sleep: bool
    ) -> None:
        self.stopped.append(replica_id)
        self.drains.append(drain)
        if self.errors:
            raise self.errors.pop(0)

    async def keep_adapters(
        self,
        node: NodeFacts,
        replica_id: ReplicaId,
        kept: Sequence[KeptAdapter],
        dropped: Sequence[str],
    ) -> None:
        self.kept.append((replica_id, tuple(kept), tuple(dropped)))
        if self.errors:
            raise self.errors.pop(0)


DRAIN = timedelta(seconds=1)


@dataclass
class World:
    """A deployment manager and everything around it."""

    placement: ScriptedPlacement = field(default_factory=ScriptedPlacement)
    clock: ManualClock = field(default_factory=ManualClock)
    store: MemoryStore = field(default_factory=MemoryStore)

    def __post_init__(self) -> None:
        self.cluster = ClusterStore(self.store, self.clock)

    @property
    def view(self) -> ClusterView:
        return self.cluster.view()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        numbers = count(1)
        manager = DeploymentManager(
            self.cluster,
            self.placement,
            self.clock,
            DEADLINES,
            drain=DRAIN,
            new_id=lambda: str(next(numbers)),
        )
        await self.cluster.apply(
            lambda view: view.with_node(node()).with_deployment(created(spec(), NOON, uid=UID)),
            Author("admin", "test"),
        )
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(manager.run())
            yield
            task.cancel()

    async def states(self, *expected: str) -> None:
        async def look() -> bool:
            return sorted(r.state for r in self.view.replicas.values()) == list(expected)

        await eventually(look, f"the replicas are {expected}")


async def test_a_wanted_replica_is_placed_and_started() -> None:
    world = World()
    async with world.running():
        await world.states("starting")
    (order,) = world.placement.started
    assert (order.replica_id, order.model) == ("mini-1", "penstock-mini")


async def test_a_start_that_did_not_reach_the_node_is_repeated_for_the_same_replica() -> None:
    world = World(ScriptedPlacement(errors=[NodeUnreachable("gone"), NodeUnreachable("gone")]))
    async with world.running():
        for _ in range(2):
            await _asleep(world)
            await world.states("pending")
            world.clock.advance(LOOK_AGAIN)
        await world.states("starting")
    assert [order.replica_id for order in world.placement.started] == ["mini-1"] * 3


async def test_a_start_that_was_refused_is_shown_as_failed_and_not_repeated() -> None:
    world = World(ScriptedPlacement(errors=[ReplicaRefused("no such engine")]))
    async with world.running():
        await world.states("failed")
        (replica,) = world.view.replicas.values()
        assert replica.status.last_error == "no such engine"
    assert len(world.placement.started) == 1


async def test_a_replica_too_many_is_drained_then_stopped_once() -> None:
    world = World()
    async with world.running():
        await world.states("starting")
        scaled = replace(spec(), replicas=0)
        await world.cluster.apply(
            lambda view: view.with_deployment(replace(view.deployments[MINI], spec=scaled)),
            Author("admin", "test"),
        )
        await world.states("draining")
        assert world.placement.stopped == []  # no snapshot says so yet
        (leaving,) = world.view.replicas.values()
        assert leaving.hand_over_at == world.clock.steady() + DRAIN
        await world.cluster.observe(
            lambda view: replace(view, published=Published(2, frozenset(), {"mini-1": 2})),
            "published",
        )

        async def stopped() -> bool:
            return [r.status.state for r in world.view.replicas.values()] == ["draining"]

        await eventually(stopped, "the agent was told")
    assert world.placement.stopped == ["mini-1"]
    resume_wait = timedelta(milliseconds=Limits().resume_wait_ms)
    assert world.placement.drains == [DRAIN + MOVING + resume_wait]


async def test_a_decision_that_cannot_be_stored_is_not_acted_on() -> None:
    world = World()
    async with world.running():
        await world.states("starting")
        world.store.failing = True
        await world.cluster.observe(
            lambda view: view.without_replica(ReplicaId("mini-1")), "the replica vanished"
        )
        before = world.store.refused

        async def refused() -> bool:
            return world.store.refused > before

        await eventually(refused, "the next replica cannot be stored")
        assert not world.view.replicas
        world.store.failing = False
        await world.states("starting")
    assert len(world.placement.started) == 2


async def _asleep(world: World) -> None:
    async def look() -> bool:
        return world.clock.sleepers > 0

    await eventually(look, "the errand waits")


async def test_a_head_that_holds_still_repeats_no_call() -> None:
    world = World(ScriptedPlacement(errors=[NodeUnreachable("gone")]))
    async with world.running():
        await _asleep(world)  # the first call failed, and is to be repeated
        await contradict(world.cluster)
        for _ in range(3):
            world.clock.advance(LOOK_AGAIN)
            await world.states("pending")
    assert len(world.placement.started) == 1
