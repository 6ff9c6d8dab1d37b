"""The gateway is started, watched, restarted, adopted and stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.control.errors import CannotStart
from penstock.control.log_files import MAX_LOG_BYTES
from penstock.control.managers.gateway_process import GatewayCommand
from penstock.control.managers.keeper import Keeper
from penstock.control.managers.proxies import (
    LONGEST_BACKOFF,
    PROBE_EVERY,
    UNANSWERED_IS_HUNG,
    GatewayManager,
)
from penstock.control.state.cluster import Cluster, Gateway, GatewayState
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_launcher import FakeLauncher, FakeProbe, FakeProcess
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_waiting import eventually


@dataclass(frozen=True, slots=True)
class World:
    """A gateway manager and everything around it."""

    command: GatewayCommand
    launcher: FakeLauncher = field(default_factory=FakeLauncher)
    probe: FakeProbe = field(default_factory=FakeProbe)
    clock: ManualClock = field(default_factory=ManualClock)
    cluster: Cluster = field(default_factory=Cluster)

    def manager(self) -> GatewayManager:
        keeper = Keeper(self.cluster, MemoryStore(), self.clock)
        return GatewayManager(self.command, self.launcher, self.probe, keeper, self.clock)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[GatewayManager]:
        manager = self.manager()
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(manager.run())
            yield manager
            task.cancel()

    def gateway(self) -> Gateway:
        return self.cluster.view().gateways["gw-1"]

    async def in_state(self, state: GatewayState) -> Gateway:
        async def look() -> bool:
            known = self.cluster.view().gateways.get("gw-1")
            return known is not None and known.state is state

        await eventually(look, f"the gateway is {state}")
        return self.gateway()

    async def started(self, number: int) -> FakeProcess:
        async def look() -> bool:
            return len(self.launcher.started) >= number

        await eventually(look, f"{number} gateways were started")
        return self.launcher.started[number - 1]

    async def asleep(self) -> None:
        async def look() -> bool:
            return self.clock.sleepers > 0

        await eventually(look, "the manager waits")


@pytest.fixture
def world(tmp_path: Path) -> World:
    command = GatewayCommand(
        id="gw-1",
        binary=Path("/bin/penstock-gateway"),
        listen="127.0.0.1:8080",
        control="127.0.0.1:8082",
        data_dir=tmp_path,
        threads=3,
    )
    return World(command)


async def test_the_gateway_is_started_with_its_flags(world: World) -> None:
    async with world.running():
        gateway = await world.in_state(GatewayState.READY)
        assert (gateway.pid, gateway.address) == (100, "127.0.0.1:8080")
    argv = " ".join(world.launcher.argv)
    assert argv == (
        "/bin/penstock-gateway --listen 127.0.0.1:8080 --control 127.0.0.1:8082 --id gw-1 "
        f"--data-dir {world.command.data_dir} --log-level info --threads 3"
    )


async def test_a_gateway_that_ended_is_started_again_within_two_seconds(world: World) -> None:
    async with world.running():
        await world.in_state(GatewayState.READY)
        world.launcher.started[0].end(-9)
        gateway = await world.in_state(GatewayState.BACKOFF)
        assert (gateway.pid, gateway.restarts) == (0, 1)
        assert "exit code -9" in gateway.last_error
        await world.asleep()
        world.clock.advance(timedelta(milliseconds=100))
        await world.started(2)
        gateway = await world.in_state(GatewayState.READY)
        assert (gateway.pid, gateway.restarts, gateway.last_error) == (101, 1, "")


async def test_the_log_of_a_gateway_is_kept_within_bounds(world: World) -> None:
    world.command.log_path.parent.mkdir()
    with world.command.log_path.open("wb") as log:
        log.truncate(MAX_LOG_BYTES + 1)
    async with world.running():
        await world.asleep()
    assert world.command.log_path.stat().st_size == 0


async def test_backoff_grows_to_its_limit_and_begins_anew_after_a_stable_run(
    world: World,
) -> None:
    async with world.running():
        waits = []
        for number in range(1, 10):
            (await world.started(number)).end(1)
            await world.in_state(GatewayState.BACKOFF)
            waits.append(await world_wait(world, number + 1))
        assert waits[:3] == [0.1, 0.2, 0.4]
        assert waits[-1] == LONGEST_BACKOFF.total_seconds()
        process = await world.started(10)
        await world.in_state(GatewayState.READY)
        world.clock.advance(timedelta(seconds=11))
        process.end(1)
        await world.in_state(GatewayState.BACKOFF)
        assert await world_wait(world, 11) == 0.1


async def world_wait(world: World, number: int) -> float:
    """Seconds of the test's clock until that many gateways were started."""
    waited = timedelta()
    while True:
        await world.asleep()
        if len(world.launcher.started) >= number:
            return round(waited.total_seconds(), 1)
        waited += world.clock.advance_to_next()


async def test_a_gateway_that_does_not_answer_is_ended_and_replaced(world: World) -> None:
    async with world.running():
        await world.in_state(GatewayState.READY)
        world.probe.lives = False
        for _ in range(UNANSWERED_IS_HUNG + 1):
            await world.asleep()
            world.clock.advance(PROBE_EVERY)
        await world_wait(world, 2)
        assert world.launcher.started[0].signals == ["KILL"]


async def test_the_next_head_adopts_the_running_gateway(world: World) -> None:
    async with world.running():
        await world.in_state(GatewayState.READY)
    next_head = replace(world, cluster=Cluster())
    async with next_head.running() as manager:
        gateway = await next_head.in_state(GatewayState.READY)
        assert gateway.pid == 100
        assert len(world.launcher.started) == 1
        world.launcher.started[0].end(None)
        await next_head.in_state(GatewayState.BACKOFF)
        assert manager


async def test_a_gateway_with_other_settings_is_replaced_not_adopted(world: World) -> None:
    async with world.running():
        await world.in_state(GatewayState.READY)
    changed = replace(world, command=replace(world.command, threads=4), cluster=Cluster())
    async with changed.running():
        await changed.started(2)
        gateway = await changed.in_state(GatewayState.READY)
        assert gateway.pid == 101
    assert world.launcher.started[0].signals == ["TERM"]


async def test_of_two_gateways_left_behind_one_is_adopted(world: World) -> None:
    for _ in range(2):
        await world.launcher.start(world.command.argv(), log_path=world.command.log_path)
    async with world.running():
        gateway = await world.in_state(GatewayState.READY)
        assert gateway.pid == 100
    assert [process.signals for process in world.launcher.started] == [[], ["TERM"]]


async def test_a_gateway_that_cannot_be_started_again_is_tried_later(world: World) -> None:
    async def told() -> bool:
        return "no such file" in world.gateway().last_error

    async with world.running():
        await world.in_state(GatewayState.READY)
        world.launcher.refusal = "cannot start it: no such file"
        world.launcher.started[0].end(-9)
        await world.in_state(GatewayState.BACKOFF)
        await world.asleep()
        world.clock.advance(timedelta(milliseconds=100))
        await eventually(told, "the reason is shown")
        world.launcher.refusal = ""
        await world_wait(world, 2)
        await world.in_state(GatewayState.READY)


async def test_a_gateway_that_could_never_be_started_ends_the_head(world: World) -> None:
    world.launcher.refusal = "cannot start it: no such file"
    with pytest.raises(ExceptionGroup) as caught:
        async with world.running():
            await asyncio.Event().wait()
    assert "no such file" in str(caught.value.exceptions[0])


async def test_stopping_ends_the_gateway(world: World) -> None:
    async with world.running() as manager:
        await world.in_state(GatewayState.READY)
    await manager.stop()
    assert world.launcher.started[0].signals == ["TERM"]
    assert world.gateway().state is GatewayState.STOPPED


@pytest.mark.parametrize("exit_code", [2, 3])
async def test_a_gateway_that_can_never_run_says_why_in_its_own_words(
    world: World, exit_code: int
) -> None:
    world.probe.lives = False
    world.launcher.log = "{}\npenstock-gateway: error: 127.0.0.1:8080 is taken\n"

    async def run() -> None:
        async with world.running():
            (await world.started(1)).end(exit_code)
            await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as caught:
        await run()
    (error,) = caught.value.exceptions
    assert isinstance(error, CannotStart)
    assert str(error) == "penstock-gateway: error: 127.0.0.1:8080 is taken"
