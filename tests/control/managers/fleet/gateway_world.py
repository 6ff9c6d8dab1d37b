"""A gateway manager, and everything around it, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

from penstock.control.errors import PenstockError
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.fleet.gateway_process import GatewayCommand
from penstock.control.managers.fleet.gateway_reports import GatewayReports
from penstock.control.managers.fleet.gateway_signs import GatewaySigns
from penstock.control.managers.fleet.local_gateway import GatewayDependencies
from penstock.control.managers.fleet.proxies import GatewayManager
from penstock.control.state.cluster import Gateway, GatewayReport, GatewayState
from penstock.control.state.fleet.gateway_liveness import GatewayPatience
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_launcher import FakeLauncher, FakeProbe, FakeProcess
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_waiting import eventually

PATIENCE = GatewayPatience()
CLIENTS, STATUS = "127.0.0.1:8080", "127.0.0.1:8083"


class World:
    """A gateway manager and everything around it; `next_head` has its processes and its clock."""

    def __init__(self, command: GatewayCommand, before: World | None = None) -> None:
        self.command = command
        self.launcher: FakeLauncher = before.launcher if before else FakeLauncher()
        self.probe: FakeProbe = before.probe if before else FakeProbe()
        self.clock: ManualClock = before.clock if before else ManualClock()
        self.cluster = cluster = ClusterStore(MemoryStore(), self.clock)
        signs = GatewaySigns(self.clock)
        self.reports = GatewayReports(cluster, signs, self.clock)
        self.needs = GatewayDependencies(
            self.launcher, self.probe, cluster, self.clock, signs, PATIENCE
        )

    def next_head(self, **changes: object) -> World:
        return World(replace(self.command, **changes), before=self)  # type: ignore[arg-type]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[GatewayManager]:
        manager = GatewayManager(self.command, self.needs)
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(manager.run())
            yield manager
            task.cancel()

    def gateways(self) -> dict[str, GatewayState]:
        return {each.id: each.state for each in self.cluster.view().gateways.values()}

    def gateway(self) -> Gateway:
        return self.cluster.view().gateways["gw-1"]

    async def report(self, gateway_id: str, version: int = 1, **facts: object) -> None:
        report = GatewayReport(self.clock.now(), version, **facts)  # type: ignore[arg-type]
        await self.reports.take(gateway_id, report)

    async def reporting(self, gateway_id: str) -> None:
        """Reports each second of the test's clock, until cancelled."""
        while True:
            await self.report(gateway_id)
            await self.clock.sleep(timedelta(seconds=1))

    async def shown(self, gateways: dict[str, GatewayState]) -> None:
        async def look() -> bool:
            return self.gateways() == gateways

        await eventually(look, f"the view shows {gateways}")

    async def pass_time(self, seconds: float) -> None:
        """Lets the test's clock go on in the manager's own steps."""
        until = self.clock.monotonic() + seconds
        while self.clock.monotonic() < until:
            await settled()
            self.clock.advance_to_next()
        await settled()

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


async def world_wait(world: World, number: int) -> float:
    """Seconds of the test's clock until that many gateways were started."""
    waited = timedelta()
    while True:
        await world.asleep()
        if len(world.launcher.started) >= number:
            return round(waited.total_seconds(), 1)
        waited += world.clock.advance_to_next()


async def settled() -> None:
    """Lets every task run until it waits for something."""
    for _ in range(30):
        await asyncio.sleep(0)


async def turning(world: World, task: asyncio.Task[Gateway]) -> Gateway:
    """The task's result; the clock goes on meanwhile."""
    async with asyncio.timeout(60):
        while not task.done():
            await world.pass_time(0.1)
    return task.result()


def only(error: BaseException) -> BaseException:
    """The one error in groups of groups."""
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    return error


async def refused(work: Coroutine[object, object, Gateway]) -> str:
    """Why it was refused."""
    try:
        await work
    except PenstockError as error:
        return str(error)
    raise AssertionError("it was not refused")
