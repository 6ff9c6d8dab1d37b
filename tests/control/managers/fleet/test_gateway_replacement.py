"""A gateway gives way to another one on its port, and nobody is cut off."""

from __future__ import annotations

import asyncio
import logging

import pytest

from penstock.control.errors import Code
from penstock.control.managers.write import Write
from penstock.control.state.cluster import GatewayState
from tests.control.managers.fleet.gateway_world import (
    PATIENCE,
    World,
    refused,
    turning,
    world_wait,
)
from tests.fakes.control_errors import raises_code
from tests.fakes.control_launcher import FakeProcess


async def test_a_gateway_with_other_settings_serves_until_its_replacement_does(
    world: World,
) -> None:
    async with world.running():
        await world.in_state(GatewayState.READY)
    changed = world.next_head(threads=4)
    async with changed.running():
        fresh = await changed.started(2)
        old = world.launcher.started[0]
        assert old.signals == []
        await changed.report("gw-1.2")
        await changed.pass_time(1)
        assert old.signals == [], "it has not told yet what it counted while no head was there"
        await changed.report("gw-1")
        await changed.pass_time(1)
        await changed.shown({"gw-1.2": GatewayState.READY})
        assert set(old.signals) == {"TERM"}
        assert fresh.argv[-1] == "--share-port"


async def test_replacing_starts_the_new_gateway_before_the_old_one_drains(world: World) -> None:
    (world.command.data_dir / "snapshot-gw-1.pb").write_text("routes")
    async with world.running() as manager, asyncio.TaskGroup() as tasks:
        await world.in_state(GatewayState.READY)
        old = world.launcher.started[0]
        old.stubborn = True  # it has streams to finish
        replacing = tasks.create_task(manager.replace("gw-1", Write("test")))
        await world.started(2)
        assert old.signals == []
        reports = tasks.create_task(world.reporting("gw-1.2"))
        fresh = await turning(world, replacing)
        assert (fresh.id, fresh.pid) == ("gw-1.2", 101)
        assert old.signals == ["TERM"]
        await world.shown({"gw-1": GatewayState.DRAINING, "gw-1.2": GatewayState.READY})
        assert (world.command.data_dir / "snapshot-gw-1.2.pb").read_text() == "routes"
        old.end(0)
        await world.shown({"gw-1.2": GatewayState.READY})
        assert not (world.command.data_dir / "snapshot-gw-1.pb").exists()
        reports.cancel()


async def test_a_replacement_that_does_not_come_up_leaves_the_old_gateway_alone(
    world: World,
) -> None:
    async with world.running() as manager, asyncio.TaskGroup() as tasks:
        await world.in_state(GatewayState.READY)
        world.launcher.log = "penstock-gateway: error: no such flag\n"
        replacing = tasks.create_task(refused(manager.replace("gw-1", Write("test"))))
        (await world.started(2)).end(2)
        assert "no such flag" in await replacing
        await world.shown({"gw-1": GatewayState.READY})
        assert world.launcher.started[0].signals == []


async def test_only_the_current_gateway_can_be_replaced(world: World) -> None:
    async with world.running() as manager:
        await world.in_state(GatewayState.READY)
        with raises_code(Code.UNKNOWN_GATEWAY, match="gw-9"):
            await manager.replace("gw-9", Write("test"))


async def test_a_replaced_gateway_that_dies_is_started_again_under_its_own_id(
    world: World,
) -> None:
    async with world.running() as manager, asyncio.TaskGroup() as tasks:
        await world.in_state(GatewayState.READY)
        replacing = tasks.create_task(manager.replace("gw-1", Write("test")))
        await world.started(2)
        await world.report("gw-1.2")
        await turning(world, replacing)
        world.launcher.started[1].end(-9)
        await world_wait(world, 3)
        assert "gw-1.2" in world.launcher.argv
        assert "--share-port" not in world.launcher.argv
        await world.shown({"gw-1.2": GatewayState.READY})


async def test_the_next_head_takes_up_a_replacement_that_was_under_way(world: World) -> None:
    for generation in (1, 2):
        argv = world.command.of_generation(generation).argv()
        await world.launcher.start(argv, log_path=world.command.log_path)
    old, fresh = world.launcher.started
    old.stubborn = True
    async with world.running():
        await world.pass_time(1)
        await world.report("gw-1.2")
        await world.report("gw-1")
        await world.pass_time(1)
        await world.shown({"gw-1": GatewayState.DRAINING, "gw-1.2": GatewayState.READY})
        assert (set(old.signals), fresh.signals) == ({"TERM"}, [])


async def two_left_behind(world: World) -> tuple[FakeProcess, FakeProcess]:
    """The head died while a gateway was being replaced: both run, and both finish slowly."""
    for generation in (1, 2):
        argv = world.command.of_generation(generation).argv()
        await world.launcher.start(argv, log_path=world.command.log_path)
    old, fresh = world.launcher.started
    old.stubborn = True
    return old, fresh


async def test_an_older_gateway_serves_until_the_newest_has_reported_that_it_has_routes(
    world: World,
) -> None:
    old, _ = await two_left_behind(world)
    async with world.running():
        await world.pass_time(20)
        await world.report("gw-1")
        await world.report("gw-1.2", version=0)
        await world.pass_time(1)
        assert old.signals == []
        await world.report("gw-1.2")
        await world.pass_time(1)
        assert set(old.signals) == {"TERM"}


async def test_an_older_gateway_goes_on_where_the_newest_ends_before_it_worked(
    world: World,
) -> None:
    old, fresh = await two_left_behind(world)
    async with world.running() as manager, asyncio.TaskGroup() as tasks:
        await world.pass_time(1)
        fresh.end(1)
        await world.pass_time(1)
        await world.shown({"gw-1": GatewayState.READY})
        assert (old.signals, len(world.launcher.started)) == ([], 2)
        replacing = tasks.create_task(manager.replace("gw-1", Write("test")))
        await world.started(3)
        await world.report("gw-1.2")
        await turning(world, replacing)
        assert set(old.signals) == {"TERM"}


async def test_a_gateway_that_drains_already_takes_nobodys_place(world: World) -> None:
    _, fresh = await two_left_behind(world)
    async with world.running():
        await world.pass_time(1)
        await world.report("gw-1", draining=True)
        fresh.end(1)
        await world_wait(world, 3)
        assert "gw-1.2" in world.launcher.argv


async def test_two_gateways_that_cannot_report_are_left_alone_while_their_ports_answer(
    world: World,
) -> None:
    old, fresh = await two_left_behind(world)
    async with world.running():
        await world.pass_time(PATIENCE.hung_after.total_seconds() * 3)
        assert (old.signals, fresh.signals) == ([], [])


async def test_of_an_adopted_gateway_that_never_reports_the_log_says_once_what_to_do(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with world.running() as _, asyncio.TaskGroup() as tasks:
        reports = tasks.create_task(world.reporting("gw-1"))
        await world.pass_time(PATIENCE.mute_after.total_seconds() * 2)
        reports.cancel()
    assert "penstock replace" not in caplog.text
    later = world.next_head()
    async with later.running():
        await later.pass_time(PATIENCE.mute_after.total_seconds() * 2)
        assert "penstock replace gw-1" in later.cluster.view().gateways["gw-1"].last_error
    assert caplog.text.count("penstock replace gw-1") == 1


async def test_two_gateways_of_which_nothing_is_heard_on_any_port_are_ended(world: World) -> None:
    old, fresh = await two_left_behind(world)
    world.probe.lives = False
    async with world.running():
        await world.pass_time(PATIENCE.hung_after.total_seconds() + 30)
        assert "KILL" in old.signals
        assert "KILL" in fresh.signals


async def test_one_that_drains_beside_another_is_ended_long_after_its_own_deadline(
    world: World,
) -> None:
    old, _ = await two_left_behind(world)
    async with world.running(), asyncio.TaskGroup() as tasks:
        reports = tasks.create_task(world.reporting("gw-1.2"))
        await world.pass_time(PATIENCE.hung_draining_after.total_seconds() - 10)
        assert set(old.signals) == {"TERM"}
        await world.pass_time(30)
        assert old.signals == ["TERM", "TERM", "KILL"]
        reports.cancel()
