"""What a pool does with a zygote and members that do what the test says; no process, no time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from penstock.control.node_agent.warm_dependencies import PoolDependencies, StartOrder
from penstock.control.node_agent.warm_policy import LEAST_MEMORY, PATIENCE
from penstock.control.node_agent.warm_pool import Cold, WarmPool
from penstock.control.supervision.process import Process
from tests.fakes.control_clock import ManualClock
from tests.fakes.waiting import until
from tests.fakes.warm_members import ORDER, ScriptedZygotes

QUICK = replace(PATIENCE, fork_limit=timedelta(seconds=0.05))


@dataclass
class World:
    """A node around one pool."""

    asked: int | None = 1
    zygotes: ScriptedZygotes = field(default_factory=ScriptedZygotes)
    clock: ManualClock = field(default_factory=ManualClock)
    code: str = "as installed"
    starts: bool = False
    here: frozenset[str] = frozenset()
    memory: int = LEAST_MEMORY

    def __post_init__(self) -> None:
        needs = PoolDependencies(
            "vllm",
            self.zygotes.start,
            lambda: self.code,
            lambda: self.memory,
            self.clock,
            QUICK,
        )
        self.pool = WarmPool(needs, self.asked, "cpu")

    def start_waits(self, by: datetime) -> bool:
        return self.starts

    def engines(self) -> frozenset[str]:
        return self.here

    @property
    def waiting(self) -> int:
        return self.pool.status().waiting

    async def passes(self, seconds: float) -> None:
        """Time, once the pool waits for it."""
        await until(lambda: self.clock.sleepers > 0, "the pool waits")
        self.clock.advance(timedelta(seconds=seconds))

    async def becomes(self, condition: Callable[[], bool], what: str) -> None:
        await until(condition, f"{what}: {self.pool.status()}", seconds=10)

    async def fill(self) -> None:
        """From nothing to full."""
        before = self.zygotes.started
        await self.passes(2)
        await self.becomes(lambda: self.zygotes.started > before, "a zygote")
        self.zygotes.imported()
        await self.becomes(lambda: self.waiting == 1, "full")

    async def claim(self) -> Process | str:
        """What runs, or why it is cold; whoever is told of it first is told the same."""
        told: list[Process] = []
        found = await self.pool.claim(ORDER, told.append)
        if isinstance(found, Cold):
            return found.reason
        assert told == [found]
        return found


@asynccontextmanager
async def running(world: World) -> AsyncIterator[World]:
    async with asyncio.TaskGroup() as tasks:
        filling = tasks.create_task(world.pool.run(world))
        yield world
        filling.cancel()
    assert not world.zygotes.alive


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with running(World()) as world:
        yield world


async def test_a_claim_becomes_what_was_asked_for_and_the_pool_is_filled_again(
    world: World,
) -> None:
    await world.fill()
    assert world.pool.status().reason == ""
    process = await world.claim()
    assert not isinstance(process, str)
    assert world.zygotes.members[0].became == ORDER
    assert world.zygotes.members[0].process is process
    world.pool.look()
    await world.becomes(lambda: world.waiting == 1, "filled again")
    status = world.pool.status()
    assert (status.target, status.claims, status.cold_starts) == (1, 1, 0)
    assert world.zygotes.started == 1


async def test_nothing_is_imported_or_forked_beside_a_start_that_waits(world: World) -> None:
    world.starts = True
    await world.passes(2)
    await world.becomes(lambda: "a replica starts" in world.pool.status().reason, "waits for it")
    assert world.zygotes.started == 0
    world.starts = False
    world.pool.look()
    await world.becomes(lambda: "in a few seconds" in world.pool.status().reason, "first answers")
    assert world.zygotes.started == 0
    await world.passes(QUICK.answers_first.total_seconds())
    await world.becomes(lambda: world.zygotes.started == 1, "its turn")


async def test_a_start_that_finds_a_zygote_and_no_member_has_one_forked(world: World) -> None:
    await world.fill()
    world.starts = True  # so that nothing is filled beside them
    found = await asyncio.gather(*(world.claim() for _ in range(5)))
    assert len({each.pid for each in found if not isinstance(each, str)}) == 5


async def test_a_start_while_the_zygote_imports_is_cold_at_once(world: World) -> None:
    assert await world.claim() == "the warm pool is not filled yet"
    await world.passes(2)
    await world.becomes(lambda: world.zygotes.started == 1, "a zygote")
    assert "imports the engine" in str(await world.claim())
    assert world.pool.status().cold_starts == 2


@pytest.mark.parametrize(
    ("does", "reason", "stays"),
    [
        ("refuses", "it is too long", True),
        ("fails fits", "a member of the warm pool ended", False),
        ("fails become", "a member of the warm pool ended", False),
    ],
)
async def test_a_member_that_cannot_leaves_the_start_to_a_cold_one(
    world: World, does: str, reason: str, stays: bool
) -> None:
    world.zygotes.does = [does]
    await world.fill()
    found = await world.pool.claim(ORDER, lambda process: None)
    assert found == Cold(reason)
    assert world.zygotes.members[0].process.alive() is stays
    await world.becomes(lambda: world.waiting == 1, "filled again")


async def test_a_zygote_that_forks_nothing_is_given_up(world: World) -> None:
    await world.fill()
    assert not isinstance(await world.claim(), str)
    world.zygotes.forks, world.starts = False, True
    assert "forked none in time" in str(await world.claim())
    await world.passes(1)
    await world.becomes(lambda: not world.zygotes.alive, "given up")
    assert "forks a member" in str(await world.claim())


async def test_a_zygote_that_is_killed_is_started_again(world: World) -> None:
    await world.fill()
    world.zygotes.dies()
    await world.becomes(lambda: "it ended" in world.pool.status().reason, "it rests")
    assert world.waiting == 0
    assert "rests: it ended" in str(await world.claim())
    await world.fill()
    assert world.zygotes.started == 2


async def test_a_member_that_is_killed_is_replaced(world: World) -> None:
    await world.fill()
    world.zygotes.members[0].process.kill()
    world.zygotes.member_ends()
    await world.becomes(lambda: len(world.zygotes.members) == 2, "another")
    assert world.waiting == 1


async def test_a_member_that_was_killed_just_now_costs_no_start_its_warmth(world: World) -> None:
    await world.fill()
    world.zygotes.members[0].process.kill()
    found = await world.claim()
    assert not isinstance(found, str)
    assert found is world.zygotes.members[1].process


@pytest.mark.parametrize("what", ["another member's end", "another claim"])
async def test_a_zygote_that_counted_one_too_many_as_waiting_is_asked_again(
    world: World, what: str
) -> None:
    await world.fill()
    world.starts = True
    first, goes_on = world.zygotes.members[0], asyncio.Event()
    become = first.become

    async def slow(order: StartOrder, *, within: timedelta) -> None:
        await goes_on.wait()
        await become(order, within=within)

    first.become = slow  # type: ignore[method-assign]
    async with asyncio.TaskGroup() as claims:
        one = claims.create_task(world.claim())
        await world.becomes(lambda: world.waiting == 0, "claimed")
        world.zygotes.forks = False
        other = claims.create_task(world.claim())
        await world.becomes(lambda: world.zygotes.asked == 2, "asked for another")
        world.zygotes.forks = True
        if what == "another claim":
            goes_on.set()
        else:
            first.process.kill()
            world.zygotes.member_ends()
        assert not isinstance(await other, str)
        goes_on.set()
    assert not isinstance(one.result(), str)


async def test_a_pool_older_than_what_is_installed_is_replaced(world: World) -> None:
    await world.fill()
    world.code = "something newer"
    assert "is newer than the warm pool" in str(await world.claim())
    assert not world.zygotes.alive or world.zygotes.started == 2
    await world.becomes(lambda: world.zygotes.started == 2, "a new one")
    world.zygotes.imported()
    await world.becomes(lambda: world.waiting == 1, "full")
    assert not isinstance(await world.claim(), str)


async def test_a_pool_whose_claims_come_to_nothing_rests(world: World) -> None:
    await world.fill()
    for _ in range(3):
        assert not isinstance(await world.claim(), str)
        world.pool.failed("it died")
    await world.becomes(lambda: "3 claims in a row" in world.pool.status().reason, "rests")
    assert not world.zygotes.alive
    assert "3 claims in a row" in str(await world.claim())
    world.clock.advance(timedelta(seconds=60))
    await world.becomes(lambda: world.zygotes.started == 2, "tried again")


async def test_a_zygote_that_cannot_be_started_is_tried_ever_more_rarely(world: World) -> None:
    world.zygotes.refusal = "no memory"
    await world.passes(2)
    await world.becomes(lambda: "rests: no memory" in world.pool.status().reason, "rests")
    world.zygotes.refusal = ""
    await world.fill()


async def test_where_nobody_said_a_pool_is_filled_once_there_is_memory() -> None:
    async with running(World(asked=None, memory=LEAST_MEMORY - 1)) as world:
        await world.passes(2)
        await world.becomes(lambda: "of memory" in world.pool.status().reason, "short of memory")
        world.memory = LEAST_MEMORY
        await world.passes(30)
        await world.becomes(lambda: world.zygotes.started == 1, "a zygote")


async def test_where_nobody_said_no_pool_is_filled_for_other_engines_replicas() -> None:
    async with running(World(asked=None, here=frozenset({"bedrock"}))) as world:
        await world.passes(2)
        await world.becomes(lambda: "no replica" in world.pool.status().reason, "not for these")
        world.here = frozenset({"bedrock", "vllm"})
        world.pool.look()
        await world.becomes(lambda: world.zygotes.started == 1, "a zygote")


async def test_replicas_of_other_engines_and_nodes_without_a_pool_hear_of_none(
    world: World,
) -> None:
    other = ORDER._replace(engine="bedrock")
    assert await world.pool.claim(other, lambda process: None) == Cold("")
    without = World(asked=0)
    await without.pool.run(without)
    assert await without.claim() == ""
    assert without.pool.status().reason == "--warm 0"
    assert (without.zygotes.started, without.pool.status().cold_starts) == (0, 0)
