"""Nodes hear what their replicas are to keep, however often that takes, and contents go in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.adapters.alias import Alias, Move, Target
from penstock.adapters.fitness import FamilyLimits
from penstock.control.errors import Code, HoldsStill, NodeUnreachable, NotFound, ReplicaRefused
from penstock.control.managers.adapters.library import AdapterLibrary
from penstock.control.managers.adapters.residence import LOOK_AGAIN, AdapterResidence
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import KeptAdapter, NodeFacts, ReplicaId
from penstock.control.state.rollout.deployment import created
from penstock.control.store.adapters.content import AdapterContents
from penstock.control.store.store import Author
from tests.adapters.examples import ref, version
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import NOON, UID, node, replica, spec
from tests.fakes.control_waiting import eventually

TEMPLATE = replace(spec().template, max_adapters=2)
MINI = created(replace(spec(), template=TEMPLATE), NOON, uid=UID)
ADMIN = Author("admin", "test")


async def until(condition: Callable[[], bool]) -> None:
    async def look() -> bool:
        return condition()

    await eventually(look, "the condition of the test")


class Nodes:
    """Takes orders, or fails as it is told to."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []
        self.asked = 0
        self.kept: dict[str, tuple[list[str], tuple[str, ...]]] = {}

    async def keep_adapters(
        self,
        node: NodeFacts,
        replica_id: ReplicaId,
        kept: Sequence[KeptAdapter],
        dropped: Sequence[str],
    ) -> None:
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)
        self.kept[replica_id] = ([each.name for each in kept], tuple(dropped))


class Nowhere:
    """There are no sources."""

    @contextmanager
    def fetched(self, source: str, max_bytes: int) -> Iterator[Path]:
        yield Path(source)


class World:
    """The loop between a view and nodes."""

    def __init__(self, directory: Path) -> None:
        self.clock, self.nodes = ManualClock(), Nodes()
        self.cluster = ClusterStore(MemoryStore(), self.clock)
        self.contents = AdapterContents(directory)
        self.residence = self.residence_of(self.nodes)

    def residence_of(self, nodes: Nodes) -> AdapterResidence:
        library = AdapterLibrary(self.contents, Nowhere(), self.cluster.view, self.clock)
        return AdapterResidence(self.cluster, nodes, library, self.clock)  # type: ignore[arg-type]

    @asynccontextmanager
    async def running(self, residence: AdapterResidence | None = None) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task((residence or self.residence).run())
            yield
            task.cancel()

    async def change(self, **fields: object) -> None:
        await self.cluster.apply(lambda view: replace(view, **fields), ADMIN)  # type: ignore[arg-type]

    async def name(self, target: str) -> None:
        """The alias `sea` names this version."""
        adapters = self.cluster.view().adapters
        if ref(target) not in adapters.versions:
            adapters = adapters.with_version(version(target, target, family=TEMPLATE.family))
        move = Move(Target.of(ref(target)), NOON, "alice")
        await self.change(adapters=adapters.with_alias(Alias("mini", "sea", (move,))))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path / "adapters")
    view = ClusterView().with_deployment(MINI).with_node(node()).with_replica(replica("r1"))
    await world.cluster.apply(lambda _: view, ADMIN)
    async with world.running():
        yield world


async def test_a_moved_alias_is_told_to_the_nodes(world: World) -> None:
    world.residence.open()
    await world.name("pirate@1")
    await until(lambda: world.nodes.kept.get("r1") == (["pirate@1"], ()))
    await world.name("pirate@2")
    await until(lambda: world.nodes.kept.get("r1") == (["pirate@2"], ()))


async def test_nothing_is_told_before_the_registry_is_whole(world: World) -> None:
    await world.name("pirate@1")
    nodes = Nodes()
    another = world.residence_of(nodes)
    another.open()
    async with world.running(another):
        await until(lambda: "r1" in nodes.kept)
    assert world.nodes.asked == 0
    world.residence.open()
    await until(lambda: "r1" in world.nodes.kept)


@pytest.mark.parametrize(
    "error",
    [
        NodeUnreachable("away"),
        NotFound("not yet", Code.UNKNOWN_REPLICA),
        HoldsStill("another head's"),
    ],
)
async def test_what_was_not_heard_is_said_again(world: World, error: Exception) -> None:
    world.residence.open()
    world.nodes.errors = [error]
    await world.name("pirate@1")
    await until(lambda: world.nodes.asked == 1)
    await until(lambda: world.clock.sleepers > 0)
    world.clock.advance(LOOK_AGAIN)
    await until(lambda: world.nodes.kept.get("r1") == (["pirate@1"], ()))


async def test_a_node_that_knows_no_such_order_is_not_asked_again(world: World) -> None:
    world.residence.open()
    world.nodes.errors = [ReplicaRefused("an older agent")]
    await world.name("pirate@1")
    await until(lambda: world.nodes.asked == 1)
    world.nodes.errors = []
    await world.cluster.observe(lambda view: view.with_replica(replica("r2")), "another")
    await until(lambda: "r2" in world.nodes.kept)
    assert "r1" not in world.nodes.kept


async def test_content_goes_when_the_last_replica_has_let_go_of_a_removed_version(
    world: World,
) -> None:
    taken = world.contents.take_in(
        Path("replica/penstock/replica/default_model/weights/adapters/pirate"), FamilyLimits()
    )
    held = replica("r1")
    status = replace(held.status, adapters=("x@1",), adapter_digests=(taken.digest,))
    holding = replace(held, status=status)
    await world.cluster.observe(lambda view: view.with_replica(holding), "it holds")
    world.residence.open()
    await until(lambda: world.nodes.kept.get("r1") == ([], ("x@1",)))
    assert world.contents.stored() == {taken.digest}
    await world.cluster.observe(lambda view: view.with_replica(held), "it has let go")
    await until(lambda: world.contents.stored() == frozenset())
