"""Snapshots: whole, numbered upwards for ever, and held back until they are known to be right."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import pytest

from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.routing.routes import RESERVED_AT_ONCE, RouteManager
from penstock.control.state.cluster import Gateway, GatewayReport, GatewayState
from penstock.control.state.fleet.replica import ReplicaId, ReplicaState
from penstock.control.state.routing.snapshot import Routes, RouteSnapshot
from penstock.control.state.stamp import Stamp
from penstock.control.store.store import Author, Change, Contents
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import NOON, deployment, replica
from tests.fakes.control_waiting import eventually

Snapshots = AsyncIterator[RouteSnapshot]


def manager_of(store: MemoryStore) -> tuple[RouteManager, ClusterStore]:
    clock = ManualClock()
    cluster = ClusterStore(store, clock)
    return RouteManager(cluster, clock), cluster


@asynccontextmanager
async def running(routes: RouteManager) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(routes.run())
        yield
        task.cancel()


async def first(snapshots: Snapshots) -> RouteSnapshot:
    async with asyncio.timeout(5):
        return await anext(snapshots)


async def test_nothing_is_told_before_the_routes_are_opened() -> None:
    routes, _ = manager_of(MemoryStore())
    watching = routes.watch(0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await anext(watching)
    await routes.open()
    assert (await first(routes.watch(0))).version == 1


async def test_each_change_is_told_whole_and_no_change_is_not() -> None:
    routes, cluster = manager_of(MemoryStore())
    await cluster.observe(lambda view: view.with_deployment(deployment()), "test")
    await routes.open()
    async with running(routes):
        watching = routes.watch(0)
        assert (await first(watching)).routes.replicas == ()
        await cluster.observe(lambda view: view.with_replica(replica("a")), "test")
        second = await first(watching)
        assert (second.version, [r.id for r in second.routes.replicas]) == (2, ["a"])
        await cluster.observe(lambda view: view, "test")
        await cluster.observe(lambda view: view.with_replica(replica("b")), "test")
        third = await first(watching)
        assert (third.version, [r.id for r in third.routes.replicas]) == (3, ["a", "b"])


async def test_versions_grow_across_restarts() -> None:
    store = MemoryStore()
    versions = []
    for _ in range(3):
        routes, _ = manager_of(store)
        await routes.open()
        versions.append(routes.current().version)
    assert versions == [1, RESERVED_AT_ONCE + 1, 2 * RESERVED_AT_ONCE + 1]


async def test_a_gateway_from_the_future_moves_the_versions_above_its_own() -> None:
    store = MemoryStore()
    routes, _ = manager_of(store)
    await routes.open()
    other = routes.watch(0)
    await first(other)
    assert (await first(routes.watch(1_000_000))).version == 1_000_001
    assert (await first(other)).version == 1_000_001
    restarted, _ = manager_of(store)
    await restarted.open()
    assert restarted.current().version > 1_000_001


async def test_a_version_that_no_head_ever_told_moves_nothing() -> None:
    routes, _ = manager_of(MemoryStore())
    await routes.open()
    assert (await first(routes.watch(2**64 - 1))).version == 1


async def test_a_head_that_holds_still_tells_nothing_until_it_has_taken_over() -> None:
    store = MemoryStore()
    routes, cluster = manager_of(store)
    await cluster.restore()
    cluster.listen_to_all()
    await cluster.observe_stamp("gateway g", Stamp("another", 5, 9))
    await routes.open()
    async with running(routes):
        watching = routes.watch(7)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await anext(watching)
        watching = routes.watch(7)
        await cluster.take_over()
        told = await first(watching)
    assert (told.stamp.cluster_id, told.stamp.epoch) == ("another", 6)
    assert told.version > 7


async def test_the_plan_learns_since_which_version_a_replica_is_left_out() -> None:
    routes, cluster = manager_of(MemoryStore())
    await cluster.observe(
        lambda view: view.with_deployment(deployment()).with_replica(replica("a")), "test"
    )
    await routes.open()
    assert cluster.view().published.ready == {"a"}
    async with running(routes):
        watching = routes.watch(0)
        await first(watching)
        draining = replica("a", ReplicaState.DRAINING)
        await cluster.observe(lambda view: view.with_replica(draining), "test")
        version = (await first(watching)).version

        async def known() -> bool:
            return cluster.view().published.left == {"a": version}

        await eventually(known, "the plan knows")


async def test_versions_go_on_though_the_store_fails() -> None:
    store = MemoryStore()
    routes, _ = manager_of(store)
    await routes.open()
    store.failing = True
    assert (await first(routes.watch(RESERVED_AT_ONCE * 2))).version == RESERVED_AT_ONCE * 2 + 1


class SlowStore(MemoryStore):
    """Each write waits until it is let through."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.writing = asyncio.Event()
        self.loading = asyncio.Event()

    async def load(self) -> Contents:
        self.loading.set()
        return await super().load()

    async def apply(self, changes: Sequence[Change], author: Author, at: datetime) -> int:
        self.writing.set()
        await self.gate.wait()
        return await super().apply(changes, author, at)


async def test_versions_do_not_go_back_while_others_are_being_reserved() -> None:
    store = SlowStore()
    routes, _ = manager_of(store)
    await routes.open()
    store.gate.clear()
    store.writing.clear()
    async with asyncio.TaskGroup() as tasks, running(routes):
        far = tasks.create_task(first(routes.watch(1_000_000)))
        await store.writing.wait()
        further = tasks.create_task(first(routes.watch(1_000_005)))
        near = tasks.create_task(first(routes.watch(2)))
        store.gate.set()
        told = [(await each).version for each in (far, further, near)]
        assert routes.current().version >= max(told)
        assert (await further).version > 1_000_005
    restarted, _ = manager_of(store)
    await restarted.open()
    assert restarted.current().version > max(told)


async def test_what_changes_while_a_version_is_reserved_is_told_with_it() -> None:
    store = SlowStore()
    routes, cluster = manager_of(store)
    await cluster.observe(
        lambda view: view.with_deployment(deployment()).with_replica(replica("a")), "test"
    )
    store.gate.clear()
    store.writing.clear()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(cluster.raise_counter("another", 1))
        await store.writing.wait()
        tasks.create_task(
            cluster.observe(lambda view: view.without_replica(ReplicaId("a")), "test")
        )
        tasks.create_task(routes.open())
        await store.loading.wait()  # its last step before the lock, where the others stand by now
        store.gate.set()
    assert routes.current().routes.replicas == ()


async def test_a_version_that_could_not_be_reserved_is_reserved_with_the_next() -> None:
    store = MemoryStore()
    routes, cluster = manager_of(store)
    store.failing = True
    await routes.open()
    store.failing = False
    async with running(routes):
        watching = routes.watch(0)
        assert (await first(watching)).version == 1
        await cluster.observe(lambda view: view.with_deployment(deployment()), "test")
        assert (await first(watching)).version == 2
    restarted, _ = manager_of(store)
    await restarted.open()
    assert restarted.current().version > 2


def reporting(name: str, version: int) -> Gateway:
    """A gateway that routes by a snapshot."""
    report = GatewayReport(NOON, snapshot_version=version)
    return Gateway(name, GatewayState.REMOTE, report=report, reporting=True)


async def told(routes: RouteManager, tasks: asyncio.TaskGroup) -> asyncio.Task[bool]:
    """Whether all gateways get to know of mini, which is being waited for."""
    asked = asyncio.Event()

    def is_routed(found: Routes) -> bool:
        asked.set()
        return names_mini(found)

    task = tasks.create_task(routes.routed_everywhere(is_routed, timedelta(seconds=30)))
    await asked.wait()
    return task


def names_mini(found: Routes) -> bool:
    return any(d.name == "mini" for d in found.deployments)


async def test_what_is_waited_for_is_told_once_every_gateway_routes_by_it() -> None:
    routes, cluster = manager_of(MemoryStore())
    await routes.open()
    for name in ("near", "far"):
        await cluster.observe(lambda view, n=name: view.with_gateway(reporting(n, 1)), "test")  # type: ignore[misc]
    async with asyncio.TaskGroup() as tasks, running(routes):
        waiting = await told(routes, tasks)
        await cluster.observe(lambda view: view.with_deployment(deployment()), "test")
        await eventually(lambda: _true(routes.current().version == 2), "the next snapshot")
        await cluster.observe(lambda view: view.with_gateway(reporting("near", 2)), "test")
        assert not await routes.routed_everywhere(names_mini, timedelta(milliseconds=20))
        assert not waiting.done()
        await cluster.observe(lambda view: view.with_gateway(reporting("far", 2)), "test")
        assert await waiting


async def test_nobody_is_waited_for_where_no_gateway_reports() -> None:
    routes, _ = manager_of(MemoryStore())
    assert await routes.routed_everywhere(lambda _: False, timedelta(seconds=30))


async def test_a_gateway_that_hangs_is_not_waited_for_for_ever() -> None:
    routes, cluster = manager_of(MemoryStore())
    await routes.open()
    await cluster.observe(lambda view: view.with_gateway(reporting("hangs", 0)), "test")
    assert not await routes.routed_everywhere(lambda _: True, timedelta(milliseconds=20))


async def _true(value: bool) -> bool:
    return value
