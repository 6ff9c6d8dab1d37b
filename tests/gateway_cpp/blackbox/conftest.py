"""A gateway with a fake head above it and fake replicas behind it, all new for each test."""

from __future__ import annotations

import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import FakeControl, deployment, route
from tests.fakes.fake_replica import FakeReplica, Script, hello
from tests.fakes.gateway_process import GatewayProcess
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.raw_http import RawClient, Response, request
from tests.gateway_cpp.blackbox.recorded import all_hold
from tests.gateway_cpp.blackbox.wires import WIRES, Wire

LABEL = re.compile(r'(\w+)="([^"]*)"')
MINI = deployment(adapters={"pirate": "pirate@1"})


@dataclass(frozen=True, slots=True)
class System:
    """What one test has."""

    gateway: GatewayProcess
    wire: Wire
    control: FakeControl
    replicas: list[FakeReplica]

    def client(self) -> RawClient:
        """A new connection, for `async with`."""
        return RawClient(self.gateway.port, tls=self.wire.context)

    def connect(self) -> socket.socket:
        """A plain blocking socket: its close() is what a client's process does."""
        return self.wire.wrap(socket.create_connection(("127.0.0.1", self.gateway.port), 20))

    async def ask(self, data: bytes, method: str = "POST") -> Response:
        """One request on a connection of its own."""
        async with self.client() as client:
            return await client.ask(data, method)

    async def ask_status(self, path: str, headers: str = "") -> Response:
        """A page of the status port; `headers` are lines, each with its CRLF."""
        async with RawClient(self.gateway.status_port) as client:
            return await client.ask(request("GET", path, headers=headers))

    async def publish(self, *replicas: routes.ReplicaRoute) -> None:
        """A snapshot with these replicas of `mini`, in force when this returns."""
        version = await self.control.publish([deployment()], replicas)
        await self.has_routes(version)

    async def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples that have these labels."""
        total = 0.0
        for line in (await self.ask_status("/metrics")).body.decode().splitlines():
            sample, _, value = line.rpartition(" ")
            told = dict(LABEL.findall(sample))
            if sample.partition("{")[0] == name and labels.items() <= told.items():
                total += float(value)
        return total

    async def drops(self, reason: str) -> float:
        """How many requests were refused for that reason."""
        return await self.metric("penstock_gateway_drops_total", reason=reason)

    async def has_queued(self, count: int) -> None:
        """Waits until the gateway reports so many requests in its queues."""
        await self.reports(
            lambda report: sum(d.queued for d in report.deployments) == count,
            f"{count} requests wait",
        )

    async def reports(
        self, holds: Callable[[routes.GatewayReport], bool], what: str
    ) -> routes.GatewayReport:
        """The next report of which that is true."""
        seen = len(self.control.reports)
        return await until(
            lambda: next((r for r in self.control.reports[seen:] if holds(r)), None), what
        )

    async def has_routes(self, version: int) -> None:
        """Waits until the gateway routes by that snapshot."""
        await until(
            lambda: self.gateway.find_log("routes replaced", version=version),
            f"snapshot {version} is in force",
        )


class Start(Protocol):
    """Starts a system: a replica for each script, further flags for the gateway."""

    def __call__(
        self,
        *flags: str,
        scripts: tuple[Script, ...] = (hello,),
        deployment: routes.DeploymentRoute = ...,
        tenants: Iterable[routes.Tenant] = (),
        keys_required: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> Awaitable[System]: ...


@pytest.fixture
def wire(request: pytest.FixtureRequest) -> Wire:
    """Plain HTTP, unless a test asks for others: `@OVER_BOTH_WIRES`."""
    return WIRES[getattr(request, "param", "plain")]


@pytest.fixture
async def start(tmp_path: Path, wire: Wire) -> AsyncIterator[Start]:
    """Starts systems that end with the test; what each has logged of requests is in its records."""
    started: list[System] = []
    async with AsyncExitStack() as stack:

        async def start_system(
            *flags: str,
            scripts: tuple[Script, ...] = (hello,),
            deployment: routes.DeploymentRoute = MINI,
            tenants: Iterable[routes.Tenant] = (),
            keys_required: bool = False,
            env: Mapping[str, str] | None = None,
        ) -> System:
            control = await stack.enter_async_context(FakeControl())
            replicas = [
                await stack.enter_async_context(FakeReplica(f"r{i + 1}", script))
                for i, script in enumerate(scripts)
            ]
            routed = [route(r) for r in replicas]
            version = await control.publish(
                [deployment], routed, tenants=tenants, keys_required=keys_required
            )
            gateway = await stack.enter_async_context(
                GatewayProcess(
                    tmp_path,
                    *("--control", control.address, "--id", "gw-1", "--data-dir", str(tmp_path)),
                    *("--threads", "2", "--metrics", "127.0.0.1:0"),
                    *wire.flags(tmp_path),
                    *flags,
                    env=env,
                )
            )
            await gateway.start()
            system = System(gateway, wire, control, replicas)
            await system.has_routes(version)
            started.append(system)
            return system

        yield start_system
        for each in started:
            await all_hold(each)


@pytest.fixture
async def system(start: Callable[[], Awaitable[System]]) -> System:
    """The usual one: a single replica that says hello."""
    return await start()
