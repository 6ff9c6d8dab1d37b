"""Events are stored, followed, and stand in nobody's way."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing

import pytest

from penstock.control.errors import Unavailable
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.events import (
    MOST_FOLLOWERS,
    WRITE_EVERY,
    EventManager,
    Followed,
)
from penstock.control.state.cluster import Gateway, GatewayState
from penstock.control.state.events import KEPT_FOR, Wanted
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import contradict, node
from tests.fakes.event_counts import EventCounts
from tests.fakes.waiting import until

ALL = Wanted()


class World:
    """A head that tells, and what stands around it."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.clock, self.store = ManualClock(), store or MemoryStore()
        self.cluster, self.counts = ClusterStore(self.store, self.clock), EventCounts()
        self.events = EventManager(self.cluster, self.store, self.clock, self.counts)

    async def joins(self, name: str) -> None:
        await self.cluster.observe(lambda view: view.with_node(node(name)), "test")

    async def sees(self, gateway: Gateway) -> None:
        await self.cluster.observe(lambda view: view.with_gateway(gateway), "test")

    async def stored(self) -> list[str]:
        return [each.event.name for each in (await self.store.events(ALL)).events]

    async def followed(self, after: int | None) -> list[Followed]:
        """All that a follower has until the head ends, which it does."""
        self.events.close()
        return [page async for page in self.events.follow(ALL, after)]


@pytest.fixture
def world() -> World:
    return World()


async def test_what_changes_while_the_store_is_slow_is_told_step_by_step(world: World) -> None:
    for name in ("n1", "n2"):
        await world.joins(name)
    await world.cluster.observe(lambda view: view.without_node(node("n2").id), "test")
    await world.events.write()
    assert await world.stored() == ["n1", "n2", "n2"]


async def test_a_store_that_fails_costs_events_which_are_counted_and_nothing_else(
    world: World,
) -> None:
    await world.joins("n1")
    world.store.failing = True
    await world.events.write()
    world.store.failing = False
    assert world.counts.lost == 1
    await world.joins("n2")
    await world.events.write()
    assert (await world.stored(), world.counts.lost) == (["n2"], 1)


async def test_a_head_that_holds_still_writes_nothing_into_what_may_be_the_wrong_store(
    world: World,
) -> None:
    await world.cluster.restore()
    await contradict(world.cluster)
    await world.events.write()
    assert await world.stored() == []


async def test_a_gateway_that_the_last_head_knew_is_no_news_and_one_that_comes_again_is() -> None:
    store = MemoryStore()

    async def connected(world: World) -> int:
        for state in (GatewayState.STARTING, GatewayState.READY):
            await world.sees(Gateway("gw-1", state))
        await world.events.write()
        return len(await world.stored())

    assert await connected(World(store)) == 1
    second = World(store)
    assert await connected(second) == 1
    await second.sees(Gateway("gw-1", GatewayState.BACKOFF))
    await connected(second)
    told = (await store.events(ALL)).events
    assert [(each.event.reason, each.count) for each in told] == [
        ("GatewayLost", 1),
        ("GatewayConnected", 2),
    ]


async def test_a_follower_is_told_what_comes(world: World) -> None:
    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(world.events.run())
        await until(lambda: world.clock.sleepers == 1, "it has looked")
        async with aclosing(world.events.follow(ALL, None)) as pages:
            assert (await anext(pages)) == Followed((), 0)
            assert (await anext(pages)) == Followed((), 0)
            await world.joins("n1")
            world.clock.advance(WRITE_EVERY)
            page = await anext(pages)
            assert ([each.event.name for each in page.events], page.reaches) == (["n1"], 1)
        writing.cancel()


async def test_whoever_asks_behind_an_id_has_all_that_came_behind_it(world: World) -> None:
    for name in ("n1", "n2", "n3"):
        await world.joins(name)
    await world.events.write()
    (page,) = await world.followed(after=1)
    assert [each.id for each in page.events] == [2, 3]
    assert (page.reaches, page.misses) == (3, None)


async def test_whoever_asks_behind_what_is_forgotten_is_told_so(world: World) -> None:
    await world.joins("n1")
    await world.joins("n2")
    await world.events.write()
    world.clock.advance(2 * KEPT_FOR)
    await world.joins("n3")
    await world.events.write()
    (page,) = await world.followed(after=1)
    assert ([each.id for each in page.events], page.misses) == ([3], 1)
    (page,) = await world.followed(after=2)
    assert ([each.id for each in page.events], page.misses) == ([3], None)


async def test_an_id_of_another_store_is_told_as_a_gap_and_what_is_kept_follows(
    world: World,
) -> None:
    await world.joins("n1")
    await world.events.write()
    (page,) = await world.followed(after=70)
    assert ([each.id for each in page.events], page.reaches, page.misses) == ([1], 1, 70)


async def test_only_so_many_may_follow_at_a_time(world: World) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(MOST_FOLLOWERS):
            pages = await stack.enter_async_context(aclosing(world.events.follow(ALL, None)))
            await anext(pages)
        with pytest.raises(Unavailable, match="follow events already"):
            await anext(world.events.follow(ALL, None))
    assert len(await world.followed(after=0)) == 1, "once they have left"
