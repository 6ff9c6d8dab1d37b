"""Adapters of a node: one fetch for all who ask, nothing half, nothing else, nothing for ever."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from penstock.adapters.fitness import FamilyLimits
from penstock.adapters.version import CONTENT_FILES, WEIGHTS_FILE, Digest
from penstock.control.errors import (
    BadAdapter,
    InvalidInput,
    NotFound,
    PenstockError,
    StoreUnavailable,
    Unavailable,
)
from penstock.control.node_agent.adapter_cache import LOADING, LOOK_AGAIN, Cached, surplus
from tests.control.node_agent.adapter_world import SHIPPED, SIZE, World, opened
from tests.fakes import waiting


async def test_what_is_missing_is_fetched_once_and_then_lies_here(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        directory = await world.cache.content(world.pirate)
        for name in CONTENT_FILES:
            assert (directory / name).read_bytes() == (SHIPPED / "pirate" / name).read_bytes()
        world.head.away = "the head is gone"
        assert await world.cache.content(world.pirate) == directory
        assert world.head.asked == [world.pirate]
        assert world.left_over() == []


async def test_all_who_ask_at_once_wait_for_one_fetch(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        world.head.held = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            asking = [tasks.create_task(world.cache.content(world.pirate)) for _ in range(8)]
            other = tasks.create_task(world.cache.content(world.json))
            await waiting.until(lambda: len(world.head.asked) == 2, "that both are asked for")
            world.head.held.set()
        assert len({task.result() for task in asking}) == 1
        assert sorted(world.head.asked) == sorted([world.pirate, world.json])
        assert other.result() != asking[0].result()


async def test_a_fetch_goes_on_when_nobody_waits_any_more(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        world.head.held = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(world.cache.content(world.pirate))
            await waiting.until(lambda: world.head.asked, "that the head is asked")
            asking.cancel()
        world.head.held.set()
        await world.cache.content(world.pirate)
        assert world.head.asked == [world.pirate]


async def test_an_error_is_told_to_all_and_kept_from_those_who_ask_later(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        world.head.away = "the head is gone"
        both = await asyncio.gather(
            *(world.cache.content(world.pirate) for _ in range(2)), return_exceptions=True
        )
        assert [str(error) for error in both] == ["the head is gone"] * 2
        world.head.away = ""
        assert (await world.cache.content(world.pirate)).is_dir()


@pytest.mark.parametrize("name", CONTENT_FILES)
async def test_what_rotted_is_fetched_anew_in_its_place(tmp_path: Path, name: str) -> None:
    async with opened(tmp_path) as world:
        directory = await world.cache.content(world.pirate)
        file = directory / name
        file.chmod(0o644)
        file.write_bytes(file.read_bytes()[:-1] + b"!")
        assert await world.cache.content(world.pirate) == directory
        assert file.read_bytes() == (SHIPPED / "pirate" / name).read_bytes()
        assert len(world.head.asked) == 2


async def test_what_rotted_is_not_handed_out_while_the_head_is_away(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        directory = await world.cache.content(world.pirate)
        (directory / WEIGHTS_FILE).unlink()
        world.head.away = "the head is gone"
        with pytest.raises(Unavailable, match="the head is gone"):
            await world.cache.content(world.pirate)


async def test_what_nobody_registered_is_told_apart(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        with pytest.raises(NotFound, match="no adapter with the digest"):
            await world.cache.content("0" * 64)


@pytest.mark.parametrize("digest", ["", "..", "incoming", "A" * 64, "a" * 63 + "\n"])
async def test_what_is_no_digest_is_asked_of_nobody(tmp_path: Path, digest: str) -> None:
    async with opened(tmp_path) as world:
        with pytest.raises(InvalidInput, match="64 hexadecimal digits"):
            await world.cache.content(digest)
        assert world.head.asked == []


async def test_an_adapter_that_no_engine_could_load_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path, limits=FamilyLimits(max_rank=4)) as world:
        with pytest.raises(BadAdapter, match="its rank is 8"):
            await world.cache.content(world.pirate)
        assert world.lying == set()


async def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    async with opened(tmp_path) as world:
        with pytest.raises(StoreUnavailable, match=r"cannot read .*cache: Not a directory"):
            await world.cache.content(world.pirate)


def test_a_disk_without_room_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    program = f"""
        import asyncio, resource
        from pathlib import Path
        from penstock.control.errors import StoreUnavailable
        from tests.control.node_agent.adapter_world import opened

        async def ask():
            async with opened(Path({str(tmp_path)!r})) as world:
                resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
                try:
                    await world.cache.content(world.pirate)
                except StoreUnavailable as error:
                    print(error, world.lying, world.left_over())

        asyncio.run(ask())
    """
    done = subprocess.run(
        [sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=True
    )
    assert "check its disk's space and its rights set() []" in done.stdout


async def test_what_a_killed_agent_had_begun_is_thrown_away(tmp_path: Path) -> None:
    for way in ("fetching", "incoming"):
        begun = tmp_path / "cache" / way / "half"
        begun.mkdir(parents=True)
        (begun / WEIGHTS_FILE).write_bytes(b"half")
    async with opened(tmp_path) as world:
        world.cache.throw_away_leftovers()
        assert world.left_over() == []


async def test_who_waits_when_the_agent_stops_is_told_so(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        world.head.stuck = True

        async def asks() -> PenstockError:
            with pytest.raises(Unavailable, match="stopping") as caught:
                await world.cache.content(world.pirate)
            return caught.value

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asks())
            await waiting.until(lambda: world.head.asked, "that the head is asked")
            world.running.cancel()
        await asks()
        assert world.left_over() == []


# ---- room

KIB = 1024


def cached(*uses: float) -> list[Cached]:
    """Contents of 1 KiB each, called a, b, c..., used at these times."""
    return [Cached(Digest(chr(ord("a") + n)), KIB, used_at) for n, used_at in enumerate(uses)]


@pytest.mark.parametrize(
    ("most", "needed", "going"),
    [
        (3 * KIB, "", ""),
        (3 * KIB - 1, "", "b"),
        (KIB, "", "bc"),
        (0, "", "bca"),
        (KIB, "b", "ca"),
        (0, "abc", ""),
    ],
)
def test_the_longest_unused_goes_first_and_never_what_is_needed(
    most: int, needed: str, going: str
) -> None:
    assert surplus(cached(3, 1, 2), most, set(needed)) == list(going)


async def settled(world: World, lying: set[str]) -> None:
    await waiting.until(lambda: world.lying == lying, f"that {lying} lie there")


async def asleep(world: World) -> None:
    """The cache has thrown away what is too much by now."""
    await waiting.until(lambda: world.clock.sleepers == 1, "that the cache sleeps")


async def test_what_is_too_much_goes_once_it_cannot_be_on_its_way_into_an_engine(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, most_bytes=SIZE + 1) as world:
        first = await world.cache.content(world.pirate)
        os.utime(first, (1, 1))
        await world.cache.content(world.json)
        assert world.lying == {world.pirate, world.json}
        await asleep(world)
        world.clock.advance(LOOK_AGAIN)
        await asleep(world)
        assert world.lying == {world.pirate, world.json}
        world.clock.advance(LOADING)
        await settled(world, {world.json})
        await asleep(world)
        assert world.left_over() == []


async def test_what_a_replica_holds_is_never_thrown_away(tmp_path: Path) -> None:
    async with opened(tmp_path, most_bytes=0) as world:
        await world.cache.content(world.pirate)
        await world.cache.content(world.json)
        world.needed.add(world.pirate)
        await asleep(world)
        world.clock.advance(LOADING)
        await settled(world, {world.pirate})
        await asleep(world)
        world.needed.clear()
        world.clock.advance(LOOK_AGAIN)
        await settled(world, set())
        assert (await world.cache.content(world.pirate)).is_dir()


async def test_what_a_replica_comes_to_hold_while_another_is_thrown_away_stays(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, most_bytes=0) as world:
        os.utime(await world.cache.content(world.pirate), (1, 1))
        await world.cache.content(world.json)
        await asleep(world)
        world.needing = lambda: {world.json} if world.pirate not in world.lying else set()
        world.clock.advance(LOADING)
        await settled(world, {world.json})
        await asleep(world)
        assert world.lying == {world.json}


async def test_what_is_handed_out_while_another_is_thrown_away_stays(tmp_path: Path) -> None:
    async with opened(tmp_path, most_bytes=0) as world:
        os.utime(await world.cache.content(world.pirate), (1, 1))
        await world.cache.content(world.json)
        await asleep(world)
        world.clock.advance(LOADING)
        asked: list[asyncio.Future[Path]] = []

        def needing() -> set[str]:
            """As a replica would that asks as soon as room begins to be made."""
            if not asked:
                asked.append(asyncio.ensure_future(world.cache.content(world.json)))
            return set()

        world.needing = needing
        await settled(world, {world.json})
        await asleep(world)
        assert world.lying == {world.json}
        assert len(world.head.asked) == 2
        await asyncio.gather(*asked)


async def test_what_the_last_agent_handed_out_has_its_time_too(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        await world.cache.content(world.pirate)
    async with opened(tmp_path, most_bytes=0) as world:
        await asleep(world)
        assert world.lying == {world.pirate}
        world.clock.advance(LOADING)
        await settled(world, set())


async def test_who_asks_for_what_is_just_thrown_away_gets_it_anew(tmp_path: Path) -> None:
    async with opened(tmp_path, most_bytes=0) as world:
        for _ in range(5):
            await world.cache.content(world.pirate)
            await asleep(world)
            world.clock.advance(LOADING)
            async with asyncio.timeout(60):
                while world.lying:  # no pause: what comes next is to meet it as it goes
                    await asyncio.sleep(0)
            directory = await world.cache.content(world.pirate)
            assert (directory / WEIGHTS_FILE).is_file()
