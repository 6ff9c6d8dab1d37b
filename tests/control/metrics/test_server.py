"""The port that Prometheus asks at."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx

from penstock.control.errors import AddressTaken, Unavailable
from penstock.control.metrics.server import RETRY, serve_metrics
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_waiting import eventually


def bound() -> socket.socket:
    """A socket on a free port."""
    found = socket.socket()
    found.bind(("127.0.0.1", 0))
    return found


@asynccontextmanager
async def served(
    page: Callable[[], bytes], listen: Callable[[], socket.socket], clock: ManualClock
) -> AsyncIterator[httpx.AsyncClient]:
    async with asyncio.TaskGroup() as tasks, httpx.AsyncClient(trust_env=False) as client:
        task = tasks.create_task(serve_metrics(listen, page, clock))
        yield client
        task.cancel()


async def test_only_metrics_are_there_and_nothing_is_listening_afterwards() -> None:
    listener = bound()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with served(lambda: b"up 1\n", lambda: listener, ManualClock()) as client:
        reply = await client.get(f"{url}/metrics?name=up")
        assert (reply.status_code, reply.text) == (200, "up 1\n")
        assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert (await client.get(url)).status_code == 404
        assert (await client.post(f"{url}/metrics")).status_code == 501
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(url.rpartition(":")[2]))) != 0


async def test_a_page_that_cannot_be_made_is_503_with_the_reason() -> None:
    def page() -> bytes:
        raise Unavailable("too busy")

    listener = bound()
    async with served(page, lambda: listener, ManualClock()) as client:
        reply = await client.get(f"http://127.0.0.1:{listener.getsockname()[1]}/metrics")
    assert (reply.status_code, reply.text) == (503, "too busy\n")


async def test_a_taken_address_is_taken_up_once_it_is_free() -> None:
    clock, taken = ManualClock(), [True]
    listener = bound()

    def listen() -> socket.socket:
        if taken[0]:
            raise AddressTaken("somebody listens there")
        return listener

    async with served(lambda: b"up 1\n", listen, clock) as client:

        async def waits() -> bool:
            return clock.sleepers == 1

        await eventually(waits, "it is told that the address is taken")
        taken[0] = False
        clock.advance(RETRY)

        async def answers() -> bool:
            try:
                reply = await client.get(f"http://127.0.0.1:{listener.getsockname()[1]}/metrics")
            except httpx.HTTPError:
                return False
            return reply.is_success

        await eventually(answers, "it serves")
