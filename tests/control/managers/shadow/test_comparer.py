"""The comparer is started when it is needed, told, watched, and started again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.control.errors import Unavailable
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.shadow.comparer import ComparerCommand, ComparerManager
from penstock.control.state.cluster import ClusterView
from penstock.control.state.recording.recorded import RecordingOrder, RecordingStanding
from penstock.control.state.shadow.comparing import Account, Order, Standing, Standings
from penstock.control.state.shadow.shadows import Compared, Shadow
from penstock.control.state.shadow.spec import Candidate, Primary, ShadowSpec
from penstock.control.store.store import Author
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_launcher import FakeLauncher, FakeProcess
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import NOON
from tests.fakes.control_waiting import eventually

SPEC = ShadowSpec("s", Primary("chat"), Candidate("small"), 100)
SHADOW = Shadow(SPEC, "u1", 7, NOON)


class FakeComparer:
    """A comparer that says what it was told to, and remembers what it was asked."""

    def __init__(self) -> None:
        self.kept: list[tuple[list[str], bool]] = []
        self.pairs = 0
        self.trouble = ""
        self.silent = False
        self.closed = 0

    async def keep(
        self,
        orders: Sequence[Order],
        recordings: Sequence[RecordingOrder],
        *,
        keep_others: bool,
    ) -> Standings:
        if self.silent:
            raise Unavailable("the comparer does not answer: DEADLINE_EXCEEDED")
        self.kept.append(([each.uid for each in orders], keep_others))
        return Standings(
            [Standing(each.uid, "undecided", self.pairs, self.pairs) for each in orders],
            [RecordingStanding(each.uid, self.pairs, 0, 0, 0, {}) for each in recordings],
            self.trouble,
        )

    async def account(self, uid: str, pairs_a_day: float, *, with_texts: bool) -> Account:
        return Account("{}", uid, "")

    async def recording(self, uid: str) -> AsyncIterator[bytes]:
        yield uid.encode()

    async def close(self) -> None:
        self.closed += 1


class World:
    """A comparer's manager and everything around it."""

    def __init__(self, directory: Path) -> None:
        self.file, self.log_path = directory / "shadow.sqlite", directory / "comparer.log"
        self.launcher, self.clock, self.comparer = FakeLauncher(), ManualClock(), FakeComparer()
        self.cluster = ClusterStore(MemoryStore(), self.clock)
        command = ComparerCommand(
            argv=("comparer",),
            host="",
            log_path=self.log_path,
            file=self.file,
            announced=lambda pid: {"gateways": str(9000 + pid), "head": f"127.0.0.1:{pid}"},
            dial=lambda address: self.comparer,
        )
        self.manager = ComparerManager(command, self.launcher, self.cluster, self.clock)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self.manager.run())
            yield
            task.cancel()

    async def apply(self, **named: Shadow) -> None:
        def step(view: ClusterView) -> ClusterView:
            return replace(view, shadows=replace(view.shadows, named=named))

        await self.cluster.apply(step, Author("test", "shadows"))

    @property
    def compared(self) -> Compared:
        return self.cluster.view().shadows.compared

    @property
    def process(self) -> FakeProcess:
        return self.launcher.started[-1]

    async def is_told_of(self, process: FakeProcess) -> bool:
        """Whether gateways are told where that one listens."""
        return self.compared.address == f":{9000 + process.pid}"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_it_is_started_with_the_first_shadow_and_told_of_it(world: World) -> None:
    async with world.running():
        await world.apply(s=SHADOW)
        await eventually(lambda: _true(world.compared.known == {"u1"}), "it knows the shadow")
        assert set(world.compared.verdicts) == {"u1"}
        assert world.comparer.kept[-1] == (["u1"], False)
        assert await world.is_told_of(world.process)
        assert world.manager.standing("u1") == ("u1", "undecided", 0, 0)
        assert (await world.manager.account("u1", 9.0)).markdown == "u1"
        await world.apply()
        await eventually(lambda: _true(world.comparer.kept[-1] == ([], False)), "it is told")
    assert world.process.signals == ["TERM"]


async def test_one_that_cannot_write_is_told_of_until_it_can(world: World) -> None:
    world.comparer.trouble = "cannot write what it counts: database or disk is full"
    await world.apply(s=SHADOW)
    async with world.running():
        await eventually(
            lambda: _true(world.compared.trouble == world.comparer.trouble), "it is told of"
        )
        assert world.compared.address, "gateways go on trying"
        world.comparer.trouble = ""
        await eventually(lambda: _true(not world.compared.trouble), "it can")


async def test_what_a_shadow_has_left_behind_is_reason_enough(world: World) -> None:
    world.file.touch()
    async with world.running():
        await eventually(lambda: _true(bool(world.comparer.kept)), "it is told that none is left")
    assert world.comparer.kept[0] == ([], False)


async def test_one_that_died_is_followed_by_another_and_gateways_drop_meanwhile(
    world: World,
) -> None:
    await world.apply(s=SHADOW)
    async with world.running():
        await eventually(lambda: _true(bool(world.compared.address)), "it works")
        first = world.process
        first.end(-9)
        await eventually(lambda: _true(not world.compared.address), "gateways are told")
        assert world.compared.known == {"u1"}
        assert world.compared.trouble == "has ended, and is started again: exit code -9"
        with pytest.raises(Unavailable, match="ask again"):
            await world.manager.account("u1", 9.0)
        await eventually(lambda: _true(world.clock.sleepers > 0), "it waits")
        world.clock.advance_to_next()
        await eventually(lambda: world.is_told_of(world.process), "another one works")
        assert world.process is not first
        assert world.compared.trouble == ""


async def test_why_one_cannot_start_is_what_it_said(world: World) -> None:
    await world.apply(s=SHADOW)
    async with world.running():
        await eventually(lambda: _true(bool(world.compared.address)), "it works")
        world.log_path.write_text("comparer: error: cannot open shadow.sqlite: no room\n")
        world.process.end(1)
        await eventually(lambda: _true(bool(world.compared.trouble)), "it is noted")
        assert world.compared.trouble.endswith("again: cannot open shadow.sqlite: no room")


async def test_one_that_says_nothing_is_killed(world: World) -> None:
    await world.apply(s=SHADOW)
    async with world.running():
        await eventually(lambda: _true(bool(world.compared.address)), "it works")
        world.comparer.silent = True
        await eventually(lambda: _true("KILL" in world.process.signals), "it is killed")
        assert world.comparer.closed == 1
        world.process.end(-9)
        await eventually(lambda: _true("DEADLINE" in world.compared.trouble), "it is noted")


async def test_many_pairs_of_the_self_arm_are_noted(world: World) -> None:
    world.comparer.pairs = 500
    await world.apply(s=SHADOW)
    async with world.running():
        await eventually(lambda: _true(world.compared.enough_self == {"u1"}), "they are noted")


async def test_a_head_that_cannot_read_all_shadows_has_none_forgotten(world: World) -> None:
    await world.cluster.observe(
        lambda view: replace(view, unreadable=("shadow 'lost': KeyError: 'uid'",)), "test"
    )
    await world.apply(s=SHADOW)
    async with world.running():
        await eventually(lambda: _true(bool(world.comparer.kept)), "it is told")
    assert world.comparer.kept[0] == (["u1"], True)


async def test_a_head_that_holds_still_tells_nothing(world: World) -> None:
    await world.apply(s=SHADOW)
    await world.cluster.observe(lambda view: replace(view, held="it is behind"), "test")
    async with world.running():
        await eventually(lambda: _true(bool(world.launcher.started)), "it is started")
        await asyncio.sleep(0)
    assert world.comparer.kept == []


async def _true(found: bool) -> bool:
    return found
