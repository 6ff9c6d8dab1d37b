"""Tenants, keys and usage in a real head that is killed: nothing is lost, counted twice or late.

The gateways are simulated: they count for good what they do, and tell it as gateways do.
"""

from __future__ import annotations

import asyncio
import hashlib
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import grpc
import pytest

from penstock.v1 import routes_pb2, routes_pb2_grpc
from tests.control.head_process import HeadProcess, running_head
from tests.control.test_head import beside
from tests.fakes.control_waiting import eventually

pytestmark = pytest.mark.processes

GATEWAYS = 3
REPORT_SECONDS = 0.05  # how often each of them tells what it counted


@pytest.fixture
async def head(tmp_path: Path) -> AsyncIterator[HeadProcess]:
    async with running_head(tmp_path / "data") as head:
        yield head


class CountingGateway:
    """Watches routes, and reports what it counted a few times a second."""

    def __init__(self, name: str, random: Random) -> None:
        self.name = name
        self.snapshot = routes_pb2.RouteSnapshot()
        self.lives = 0
        self.requests = 0  # since its instance began
        self.done = 0  # in all
        self._random = random

    def works(self) -> None:
        """Serves some requests."""
        count = self._random.randint(0, 5)
        self.requests += count
        self.done += count

    def restarts(self) -> None:
        """Ends orderly: what it counted was told."""
        self.lives += 1
        self.requests = 0

    def report(self) -> routes_pb2.GatewayReport:
        """What it has counted."""
        row = routes_pb2.UsageReport(
            tenant="acme",
            key_id="key_1",
            deployment="mini",
            requests=self.requests,
            prompt_tokens=10 * self.requests,
            completion_tokens=3 * self.requests,
        )
        return routes_pb2.GatewayReport(
            gateway_id=self.name,
            at_ms=1,
            snapshot_version=self.snapshot.version,
            stamp=self.snapshot.stamp,
            instance=f"{self.name}-{self.lives}",
            usage=[row],
        )

    async def watches(self, head: HeadProcess) -> None:
        """Takes every snapshot; asks again where the head went."""
        while True:
            async with Connected(head) as stub:
                request = routes_pb2.WatchRoutesRequest(
                    gateway_id=self.name,
                    have_version=self.snapshot.version,
                    stamp=self.snapshot.stamp,
                )
                with suppress(grpc.aio.AioRpcError):
                    async for snapshot in stub.Watch(request, wait_for_ready=True):
                        self.snapshot = snapshot

    async def reports(self, head: HeadProcess) -> None:
        """Works and tells."""
        while True:
            async with Connected(head) as stub:
                stream = stub.Report(wait_for_ready=True)
                with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    while True:
                        self.works()
                        await stream.write(self.report())
                        await asyncio.sleep(REPORT_SECONDS)

    async def ends(self, head: HeadProcess) -> None:
        """Says its last word, hears that it was taken, and starts anew."""
        async with Connected(head) as stub:
            stream = stub.Report()
            await stream.write(self.report())
            await stream.done_writing()
            assert await stream.read() == routes_pb2.GatewayReportReply()
        self.restarts()


class Connected:
    """A stub of the head's routes, on a connection of its own."""

    def __init__(self, head: HeadProcess) -> None:
        options = [("grpc.use_local_subchannel_pool", 1)]
        self._channel = grpc.aio.insecure_channel(head.rpc, options=options)

    async def __aenter__(self) -> Any:
        return routes_pb2_grpc.RoutesStub(self._channel)  # type: ignore[no-untyped-call]

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close(None)


async def ask(head: HeadProcess, method: str, path: str, **body: object) -> Any:
    """One call of an operator."""
    reply = await head.client.request(
        method,
        f"http://{head.admin}/admin/v1/{path}",
        json=body if method != "DELETE" else None,
        headers=head.authorization,
    )
    assert reply.is_success, reply.text
    return reply.json() if reply.content else None


async def used(head: HeadProcess) -> tuple[int, int]:
    """Requests and tokens of the tenant, as the head tells them."""
    total = (await head.get("tenants/acme/usage"))["total"]
    return total["requests"], total["prompt_tokens"] + total["completion_tokens"]


async def done_more(gateways: list[CountingGateway], count: int) -> None:
    """Returns when they have served so many requests more."""
    goal = sum(gateway.done for gateway in gateways) + count

    async def reached() -> bool:
        return sum(gateway.done for gateway in gateways) >= goal

    await eventually(reached, f"{count} more requests are served")


async def test_usage_is_exact_though_head_and_gateways_end_again_and_again(
    head: HeadProcess,
) -> None:
    random = Random(7)
    await ask(head, "PUT", "tenants/acme", requests_per_minute=60)
    gateways = [CountingGateway(f"gw-{n}", random) for n in range(GATEWAYS)]
    for _ in range(4):
        async with beside(*(gateway.reports(head) for gateway in gateways)):
            await done_more(gateways, random.randint(5, 200))
            if random.random() < 0.7:
                head.end(random.choice([signal.SIGKILL, signal.SIGTERM]))
                await head.start()
                await done_more(gateways, 20)
        await random.choice(gateways).ends(head)
    for gateway in gateways:
        await gateway.ends(head)
    done = sum(gateway.done for gateway in gateways)
    assert done > 100
    assert await used(head) == (done, 13 * done)
    head.end(signal.SIGKILL)
    await head.start()
    assert await used(head) == (done, 13 * done)


async def test_keys_reach_every_gateway_within_a_second_and_outlive_the_head(
    head: HeadProcess,
) -> None:
    gateways = [CountingGateway(f"gw-{n}", Random(n)) for n in range(GATEWAYS)]

    async def all_of(holds: Callable[[CountingGateway], bool]) -> bool:
        return all(map(holds, gateways))

    async def all_take(digest: bytes, *, wanted: bool) -> bool:
        return all(
            (digest in [key.sha256 for tenant in g.snapshot.tenants for key in tenant.keys])
            is wanted
            for g in gateways
        )

    async with beside(*(gateway.watches(head) for gateway in gateways)):
        await eventually(lambda: all_of(lambda g: g.snapshot.version > 0), "all have routes")
        assert not any(gateway.snapshot.keys_required for gateway in gateways)
        await ask(head, "PUT", "tenants/acme", requests_per_minute=60)
        began = time.monotonic()
        made = await ask(head, "POST", "tenants/acme/keys", name="ci")
        digest = hashlib.sha256(made["key"].encode()).digest()
        await eventually(lambda: all_take(digest, wanted=True), "all take the key")
        assert time.monotonic() - began < 1
        assert all(gateway.snapshot.keys_required for gateway in gateways)
        version = max(gateway.snapshot.version for gateway in gateways)
        head.end(signal.SIGKILL)
        await head.start()
        await eventually(
            lambda: all_of(lambda g: g.snapshot.version > version), "all hear of the new head"
        )
        assert await all_take(digest, wanted=True)
        began = time.monotonic()
        await ask(head, "DELETE", f"tenants/acme/keys/{made['id']}")
        await eventually(lambda: all_take(digest, wanted=False), "all refuse the key")
        assert time.monotonic() - began < 1
        assert all(gateway.snapshot.keys_required for gateway in gateways)
    files = [path for path in head.data_dir.rglob("*") if path.is_file()]
    files.append(head.data_dir.parent / "head.log")
    assert not [path for path in files if made["key"].encode() in path.read_bytes()]
