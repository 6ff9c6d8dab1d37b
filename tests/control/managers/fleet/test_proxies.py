"""The gateway is started, watched, restarted, adopted and stopped."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from penstock.control.errors import CannotStart
from penstock.control.state.cluster import GatewayState
from penstock.control.supervision.restart_policy import OWN_PROCESSES
from tests.control.managers.fleet.gateway_world import (
    CLIENTS,
    PATIENCE,
    World,
    only,
    world_wait,
)
from tests.fakes.control_waiting import eventually


async def test_the_gateway_is_started_with_its_flags(world: World) -> None:
    async with world.running():
        gateway = await world.in_state(GatewayState.READY)
        assert (gateway.pid, gateway.address) == (100, "127.0.0.1:8080")
    argv = " ".join(world.launcher.argv)
    assert argv == (
        "/bin/penstock-gateway --listen 127.0.0.1:8080 --control 127.0.0.1:8082 "
        f"--data-dir {world.command.data_dir} --id gw-1 --log-level info "
        "--metrics 127.0.0.1:8083 --threads 3"
    )


async def test_a_gateway_that_ended_is_started_again_after_its_backoff(world: World) -> None:
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
        assert waits[-1] == OWN_PROCESSES.longest_delay.total_seconds()
        process = await world.started(10)
        await world.in_state(GatewayState.READY)
        world.clock.advance(timedelta(seconds=11))
        process.end(1)
        await world.in_state(GatewayState.BACKOFF)
        assert await world_wait(world, 11) == 0.1


async def test_a_gateway_without_any_sign_of_life_is_ended_and_replaced(world: World) -> None:
    async with world.running():
        await world.in_state(GatewayState.READY)
        world.probe.lives = False
        await world.pass_time(PATIENCE.hung_after.total_seconds() - 1)
        assert world.launcher.started[0].signals == []
        assert world.gateway().state is GatewayState.UNRESPONSIVE
        await world_wait(world, 2)
        assert world.launcher.started[0].signals == ["KILL"]


async def test_clients_that_use_up_their_port_do_not_get_the_gateway_killed(world: World) -> None:
    world.probe.silent = {CLIENTS}
    async with world.running():
        await world.in_state(GatewayState.READY)
        await world.pass_time(600)
        assert world.gateway().state is GatewayState.READY
        assert world.launcher.started[0].signals == []


async def test_a_gateway_that_reports_is_not_killed_whatever_it_does_not_answer(
    world: World,
) -> None:
    async with world.running():
        await world.in_state(GatewayState.READY)
        world.probe.lives = False
        for _ in range(60):
            await world.pass_time(10)
            await world.report("gw-1")
        assert world.launcher.started[0].signals == []


async def test_a_gateway_that_said_that_it_drains_is_left_to_it(world: World) -> None:
    async with world.running():
        await world.in_state(GatewayState.READY)
        world.probe.lives = False
        await world.report("gw-1", draining=True)
        await world.pass_time(PATIENCE.hung_draining_after.total_seconds() - 10)
        assert world.gateway().state is GatewayState.DRAINING
        assert world.launcher.started[0].signals == []


async def test_a_gateway_that_somebody_told_to_stop_listens_until_another_one_does(
    world: World,
) -> None:
    async with world.running():
        await world.in_state(GatewayState.READY)
        old = world.launcher.started[0]
        old.stubborn = True  # it has streams to finish
        await world.report("gw-1", draining=True)
        await world.pass_time(1)
        assert (len(world.launcher.started), old.signals) == (2, [])
        assert "--share-port" in world.launcher.argv
        await world.report("gw-1.2")
        await world.pass_time(0.5)
        assert old.signals[0] == "TERM"
        await world.shown({"gw-1": GatewayState.DRAINING, "gw-1.2": GatewayState.READY})


async def test_the_next_head_adopts_the_running_gateway(world: World) -> None:
    async with world.running():
        await world.in_state(GatewayState.READY)
    next_head = world.next_head()
    async with next_head.running():
        gateway = await next_head.in_state(GatewayState.READY)
        assert gateway.pid == 100
        assert len(world.launcher.started) == 1
        world.launcher.started[0].end(None)
        await next_head.in_state(GatewayState.BACKOFF)


async def test_of_two_gateways_left_behind_one_is_adopted(world: World) -> None:
    for _ in range(2):
        await world.launcher.start(world.command.argv(), log_path=world.command.log_path)
    async with world.running():
        await world.pass_time(1)
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
    assert "no such file" in str(only(caught.value))


async def test_stopping_ends_the_gateway(world: World) -> None:
    async with world.running() as manager:
        await world.in_state(GatewayState.READY)
    await manager.stop()
    assert world.launcher.started[0].signals == ["INT"]
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
    error = only(caught.value)
    assert isinstance(error, CannotStart)
    assert str(error) == "penstock-gateway: error: 127.0.0.1:8080 is taken"
