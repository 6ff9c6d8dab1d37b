"""A gateway that is told to go away: who is still served, who is refused, and when it ends."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import AsyncExitStack

import pytest

from tests.fakes.fake_replica import DONE, FakeCall, Script, delta, hang, last_delta
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.held import Held, busy, narrow, waiting
from tests.gateway_cpp.blackbox.raw_http import Response, chat


async def begin_to_drain(system: System) -> None:
    """Nobody is taken any more when this returns."""
    system.gateway.terminate()
    await until(lambda: refuses_connections(system.gateway.port), "it stops accepting")


def refuses_connections(port: int) -> bool:
    """Whether nobody listens there any more."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            return False
    except ConnectionError:
        return True


def in_two_parts(released: asyncio.Event) -> Script:
    """The first event, and once they are released all the others."""

    async def script(call: FakeCall) -> None:
        await call.send(delta("a"))
        await released.wait()
        await call.send(last_delta() + DONE, events=2)
        await call.finish()

    return script


def is_sent_on(answer: Response) -> None:
    """The client is told to ask again at once, of whoever is there then."""
    assert answer.status == 503
    assert answer.error["code"] == "draining"
    assert answer.headers["x-should-retry"] == "true"
    assert answer.headers["retry-after"] == "1"
    assert answer.headers["retry-after-ms"] == "1000"


async def test_running_streams_end_whole_while_newcomers_find_nobody(start: Start) -> None:
    released = asyncio.Event()
    system = await start(scripts=(in_two_parts(released),))
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(system.client()) for _ in range(6)]
        for client in clients:
            await client.send(chat(stream=True))
            assert (await client.head())[0] == 200
            assert await client.chunk() == delta("a")
        await begin_to_drain(system)
        ready = await system.ask_status("/readyz")
        assert ready.status == 503
        assert json.loads(ready.body)["reason"] == "draining"
        assert await system.metric("penstock_gateway_draining") == 1
        report = await system.reports(lambda report: report.draining, "the head hears of it")
        assert report.deployments[0].in_flight == 6
        released.set()
        for client in clients:
            assert await client.chunk() == last_delta() + DONE
            assert await client.chunk() == b""
    assert await system.gateway.exit_code() == 0


@pytest.mark.parametrize("stream", [True, False])
async def test_whoever_still_sends_its_body_when_a_drain_ends_is_told_to_try_again(
    start: Start, stream: bool
) -> None:
    system = await start("--drain-ms", "300")
    async with system.client() as late:
        await late.send(chat(stream=stream)[:-10])
        await begin_to_drain(system)
        is_sent_on(await late.response())
    assert not system.replicas[0].calls
    await system.gateway.exit_code()


async def test_an_answer_that_is_not_begun_when_a_drain_ends_is_told_to_try_again(
    start: Start,
) -> None:
    system = await start("--drain-ms", "300", scripts=(hang,))
    async with busy(system) as unary, busy(system, chat(stream=True)) as stream:
        await begin_to_drain(system)
        is_sent_on(await unary.response())
        is_sent_on(await stream.response())
    await system.gateway.exit_code()


async def test_those_who_still_wait_when_a_drain_ends_are_told_to_try_again(start: Start) -> None:
    held = Held()
    system = await start("--drain-ms", "1000", scripts=(held,), deployment=narrow())
    async with busy(system) as first, waiting(system, chat(), chat()) as (second, third):
        system.gateway.terminate()
        held.let_go()
        assert (await first.response()).status == 200
        assert (await second.response()).status == 503  # a replica has it
        answer = await third.response()
        assert answer.status == 503
        assert answer.error["code"] == "draining"
        assert answer.headers["x-penstock-drop-reason"] == "draining"
        assert answer.headers["x-should-retry"] == "true"
        assert answer.headers["retry-after"] == "1"
    await system.gateway.exit_code()


async def test_an_open_connection_may_ask_once_more_while_it_drains(system: System) -> None:
    async with system.client() as client:
        assert (await client.ask(chat())).status == 200
        system.gateway.terminate()
        await until(lambda: system.gateway.find_log("draining"), "it drains")
        answer = await client.ask(chat())
        assert answer.status == 200
        assert answer.headers["connection"] == "close"
        assert await client.closed()
    assert await system.gateway.exit_code() == 0


async def test_a_connection_whose_stream_outlives_the_signal_may_ask_once_more(
    start: Start,
) -> None:
    released = asyncio.Event()
    system = await start(scripts=(in_two_parts(released),))
    async with system.client() as client:
        await client.send(chat(stream=True))
        await client.head()
        assert await client.chunk() == delta("a")
        system.gateway.terminate()
        await until(lambda: system.gateway.find_log("draining"), "it drains")
        released.set()
        assert await client.chunk() == last_delta() + DONE
        assert await client.chunk() == b""
        answer = await client.ask(chat(stream=True))
        assert answer.status == 200
        assert answer.headers["connection"] == "close"
        assert answer.body.endswith(DONE)
        assert await client.closed()
    assert await system.gateway.exit_code() == 0


async def test_a_client_that_only_keeps_its_side_open_makes_no_drain_a_failure(
    start: Start,
) -> None:
    system = await start("--drain-ms", "0")
    async with system.client() as lingering:
        answer = await lingering.ask(chat(headers="Connection: close\r\n"))
        assert answer.status == 200
        assert await lingering.closed()
        system.gateway.terminate()
        assert await system.gateway.exit_code() == 0
    assert system.gateway.find_log("ending what still runs"), "it was there at the deadline"


async def test_a_drain_ends_at_its_deadline_with_an_error_in_the_stream(start: Start) -> None:
    async def endless(call: FakeCall) -> None:
        await call.send(delta("a"))
        await call.cancelled.wait()

    system = await start("--drain-ms", "300", scripts=(endless,))
    async with system.client() as running:
        await running.send(chat(stream=True))
        await running.head()
        assert await running.chunk() == delta("a")
        system.gateway.terminate()
        rest = b""
        while data := await running.chunk():
            rest += data
        assert data is None or b'"error"' in rest  # never a clean end
    assert await system.gateway.exit_code() == 1
    await until(system.replicas[0].calls[0].cancelled.is_set, "the call is cancelled")


async def test_an_idle_gateway_ends_at_once(start: Start) -> None:
    system = await start(scripts=(hang,))
    system.gateway.terminate()
    assert await system.gateway.exit_code() == 0
