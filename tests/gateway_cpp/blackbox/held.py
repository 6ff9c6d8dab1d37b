"""Calls that run until the test lets them go, so that others have to wait."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from penstock.v1 import common_pb2 as common
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import deployment
from tests.fakes.fake_replica import FakeCall, Script, hello
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import System
from tests.gateway_cpp.blackbox.raw_http import CHAT, RawClient, chat, request

DIALECTS: dict[str, tuple[str, dict[str, object]]] = {
    "chat": ("/v1/chat/completions", {}),
    "responses": ("/v1/responses", {"input": "hi"}),
    "messages": ("/v1/messages", {"max_tokens": 8}),
}
COST = 200  # tokens
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


def asked(dialect: str, headers: str = "", **fields: object) -> bytes:
    """A request of that dialect."""
    path, own = DIALECTS[dialect]
    return request(path=path, body=json.dumps(CHAT | own | fields).encode(), headers=headers)


class Held:
    """A script: each call says hello once it is let go."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(0)

    async def __call__(self, call: FakeCall) -> None:
        await self._places.acquire()
        await hello(call)

    def let_go(self, count: int = 1) -> None:
        """The next so many calls go on, those that are yet to come included."""
        for _ in range(count):
            self._places.release()


class Costly(Held):
    """Each call uses 200 tokens, once it is let go."""

    async def __call__(self, call: FakeCall) -> None:
        call.usage = common.Usage(prompt_tokens=20, completion_tokens=COST - 20)
        await super().__call__(call)


def slow(seconds: float) -> Script:
    """A script: each call says hello after so long, as an engine that works."""

    async def script(call: FakeCall) -> None:
        await asyncio.sleep(seconds)
        await hello(call)

    return script


def narrow(
    max_queued: int = 10, queue_deadline_ms: int = 30_000, **limits: float
) -> routes.DeploymentRoute:
    """`mini`, of which a replica takes one call at a time."""
    return deployment(limits=narrow_limits(max_queued, queue_deadline_ms, **limits))


def narrow_limits(
    max_queued: int = 10, queue_deadline_ms: int = 30_000, **limits: float
) -> routes.Limits:
    """One call at a time, unless `limits` say more."""
    told = routes.Limits(max_ongoing=1, max_queued=max_queued, queue_deadline_ms=queue_deadline_ms)
    for name, value in limits.items():
        setattr(told, name, value)
    return told


@asynccontextmanager
async def busy(system: System, data: bytes | None = None) -> AsyncIterator[RawClient]:
    """One more request is with a replica, which does not answer by itself."""
    before = sum(len(replica.calls) for replica in system.replicas)
    async with system.client() as client:
        await client.send(data or chat())
        await until(
            lambda: sum(len(replica.calls) for replica in system.replicas) > before,
            "the call arrives",
        )
        yield client


@asynccontextmanager
async def waiting(system: System, *requests: bytes) -> AsyncIterator[list[RawClient]]:
    """These wait in the queue, in this order, each on a connection of its own."""
    async with AsyncExitStack() as stack:
        clients = []
        for i, data in enumerate(requests):
            client = await stack.enter_async_context(system.client())
            await client.send(data)
            clients.append(client)
            await system.has_queued(i + 1)
        yield clients
