"""Clients that leave, dawdle or wait: cancel, backpressure, heartbeats."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from tests.fakes.fake_replica import DONE, FakeCall, delta, hang, hello
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import RawClient, chat

MIB = 1 << 20
EVENT = delta("x" * 16_000)


async def endless(call: FakeCall) -> None:
    while True:
        await call.send(EVENT)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_before_the_first_byte_cancels(
    start: Start, stream: bool
) -> None:
    system = await start(scripts=(hang,))
    async with system.client() as client:
        await client.send(chat(stream=stream))
        await until(lambda: system.replicas[0].calls, "the call arrives")
        client.leave()
        await until(system.replicas[0].calls[0].cancelled.is_set, "the call is cancelled")
    line = await until(lambda: system.gateway.find_log("request settled"), "the request is settled")
    assert line["outcome"] == "cancelled"


async def test_a_client_that_leaves_mid_stream_cancels(start: Start) -> None:
    async def drip(call: FakeCall) -> None:
        await call.send(delta("a"))
        await call.cancelled.wait()

    system = await start(scripts=(drip,))
    async with system.client() as client:
        await client.send(chat(stream=True))
        await client.head()
        assert await client.chunk() == delta("a")
        client.leave()
        await until(system.replicas[0].calls[0].cancelled.is_set, "the call is cancelled")


async def test_a_client_that_leaves_while_events_flow_cancels(start: Start) -> None:
    system = await start(scripts=(endless,))
    async with system.client() as client:
        await client.send(chat(stream=True))
        await client.head()
        await client.chunk()
        client.leave()
        await until(system.replicas[0].calls[0].cancelled.is_set, "the call is cancelled")


async def test_a_cancelled_call_disturbs_no_other(start: Start) -> None:
    released = asyncio.Event()

    async def wait(call: FakeCall) -> None:
        await call.send(delta("a"))
        await released.wait()
        await call.send(DONE)
        await call.finish()

    system = await start("--threads", "1", scripts=(wait,))
    async with system.client() as stays:
        await stays.send(chat(stream=True))
        await stays.head()
        assert await stays.chunk() == delta("a")
        for _ in range(20):
            async with system.client() as leaves:
                await leaves.send(chat(stream=True))
                await leaves.head()
                leaves.leave()
        calls = system.replicas[0].calls
        await until(lambda: sum(c.cancelled.is_set() for c in calls) == 20, "20 are cancelled")
        released.set()
        assert await stays.chunk() == DONE
        assert await stays.chunk() == b""
    assert system.replicas[0].sessions == 1


def slow_client(port: int) -> RawClient:
    """A client whose socket takes little."""
    return RawClient(port, receive_buffer=64 << 10)


async def endless_or_hello(call: FakeCall) -> None:
    """Endless, but for the user "quick"."""
    await (hello(call) if call.json.get("user") == "quick" else endless(call))


async def held_back(system: System, *calls: FakeCall) -> None:
    """Waits until these calls have no credit left, and get none while others are answered.

    Of two requests one after the other, the second reaches the replica behind every grant for what
    came to the gateway before the first one's answer.
    """
    async with asyncio.timeout(60):
        while True:
            await until(lambda: all(call.credit <= 0 for call in calls), "no call has credit")
            before = [call.sent_bytes for call in calls]
            for _ in range(2):
                assert (await system.ask(chat(user="quick"))).status == 200
            if before == [call.sent_bytes for call in calls]:
                return


async def test_a_slow_client_holds_its_replica_back_and_costs_bounded_memory(
    start: Start,
) -> None:
    system = await start("--threads", "1", scripts=(endless_or_hello,))
    async with system.client() as warm:
        await warm.send(chat(stream=True))
        await warm.head()
        await warm.chunk()
    before = system.gateway.resident_bytes()
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(slow_client(system.gateway.port)) for _ in range(20)
        ]
        for client in clients:
            await client.send(chat(stream=True))
            assert (await client.head())[0] == 200
        calls = system.replicas[0].calls[1:]
        await held_back(system, *calls)
        # What a client's socket takes, plus the credit.
        assert max(call.sent_bytes for call in calls) < 16 * MIB
        assert system.gateway.resident_bytes() - before < 40 * MIB
        # And it goes on where it stopped.
        sent = calls[0].sent_bytes
        for _ in range(2 * sent // len(EVENT)):
            assert await clients[0].chunk() is not None
        assert calls[0].sent_bytes > sent
        for client in clients:
            client.leave()
        await until(lambda: all(c.cancelled.is_set() for c in calls), "all are cancelled")


async def test_a_slow_client_slows_nobody_else(start: Start) -> None:
    system = await start("--threads", "1", scripts=(endless_or_hello,))
    async with slow_client(system.gateway.port) as slow:
        await slow.send(chat(stream=True))
        await slow.head()
        call = system.replicas[0].calls[0]
        await held_back(system, call)
        for _ in range(20):
            answer = await system.ask(chat(stream=True, user="quick"))
            assert answer.body.endswith(DONE)
        slow.leave()


async def test_a_client_that_takes_nothing_for_too_long_is_gone(start: Start) -> None:
    system = await start("--write-timeout-ms", "500", scripts=(endless,))
    async with slow_client(system.gateway.port) as client:
        await client.send(chat(stream=True))
        await client.head()
        await until(system.replicas[0].calls[0].cancelled.is_set, "the call is cancelled")


async def test_silence_is_filled_with_comments(start: Start) -> None:
    released = asyncio.Event()

    async def late(call: FakeCall) -> None:
        await released.wait()
        await call.send(delta("a") + DONE, events=2)
        await call.finish()

    system = await start("--heartbeat-ms", "100", scripts=(late,))
    async with system.client() as client:
        await client.send(chat(stream=True))
        status, headers = await client.head()
        assert status == 200
        assert headers["content-type"].startswith("text/event-stream")
        for _ in range(3):
            comment = await client.chunk()
            assert comment is not None
            assert comment.startswith(b":")
            assert comment.endswith(b"\n\n")
        released.set()
        rest = b""
        while data := await client.chunk():
            rest += data
        assert rest.endswith(delta("a") + DONE)


async def test_a_failure_after_a_comment_goes_in_stream(start: Start) -> None:
    system = await start(
        "--heartbeat-ms", "100", "--first-event-deadline-ms", "500", scripts=(hang,)
    )
    answer = await system.ask(chat(stream=True))
    assert answer.status == 200
    assert answer.body.startswith(b":")
    assert b'"code":"deadline_exceeded"' in answer.body
    assert b"[DONE]" not in answer.body


async def test_a_unary_answer_has_no_comments(start: Start) -> None:
    released = asyncio.Event()

    async def late(call: FakeCall) -> None:
        await released.wait()
        await call.send(b"{}")
        await call.finish()

    system = await start("--heartbeat-ms", "50", scripts=(late,))
    async with system.client() as client, system.client() as streaming:
        await client.send(chat())
        await until(lambda: system.replicas[0].calls, "the call arrives")
        await streaming.send(chat(stream=True))
        await streaming.head()
        for _ in range(3):  # as often as the other would have had one
            assert (await streaming.chunk() or b"").startswith(b":")
        released.set()
        assert (await client.response()).body == b"{}"
