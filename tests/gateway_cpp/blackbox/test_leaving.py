"""Clients that leave, and clients that only stop sending: whom the gateway takes for gone."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tests.fakes.fake_replica import DONE, FakeCall, delta, hang, unary_chat
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start
from tests.gateway_cpp.blackbox.raw_http import chat, request
from tests.gateway_cpp.blackbox.wires import OVER_BOTH_WIRES, half_close

pytestmark = OVER_BOTH_WIRES

LATER = request("GET", "/livez")  # 3,000 of them are more than is read ahead


def read_all(link: socket.socket) -> bytes:
    """Everything up to the end of the connection."""
    data = b""
    while part := link.recv(65536):
        data += part
    return data


@pytest.mark.parametrize("after", [b"", b"x", LATER * 100, LATER * 3000], ids=len)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_closes_cancels_whatever_it_sent_after_its_request(
    start: Start, stream: bool, after: bytes
) -> None:
    system = await start(scripts=(hang,))
    link = system.connect()
    link.sendall(chat(stream=stream))
    await until(lambda: system.replicas[0].calls, "the call arrives")
    if after:
        link.sendall(after)
    link.close()
    await until(system.replicas[0].calls[0].cancelled.is_set, "the call is cancelled")


async def test_a_client_that_closes_mid_stream_cancels_behind_pipelined_bytes(
    start: Start,
) -> None:
    async def drip(call: FakeCall) -> None:
        await call.send(delta("a"))
        await call.cancelled.wait()

    system = await start(scripts=(drip,))
    link = system.connect()
    link.sendall(chat(stream=True) + b"GET /livez")
    await until(lambda: system.replicas[0].calls, "the call arrives")
    assert await asyncio.to_thread(link.recv, 65536)
    link.close()
    await until(system.replicas[0].calls[0].cancelled.is_set, "the call is cancelled")


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_only_stops_sending_gets_its_answer(start: Start, stream: bool) -> None:
    half_closed = asyncio.Event()

    async def late(call: FakeCall) -> None:
        await half_closed.wait()
        if call.streamed:
            await call.send(delta("late"))
            await call.send(DONE)
        else:
            await call.send(unary_chat("late"))
        await call.finish()

    system = await start(scripts=(late,))
    with system.connect() as link:
        link.sendall(chat(stream=stream))
        await until(lambda: system.replicas[0].calls, "the call arrives")
        half_close(link)
        # What the gateway asks with: an interim answer, which every reader passes over.
        interim = await asyncio.to_thread(link.recv, 65536)
        assert interim == b"HTTP/1.1 100 Continue\r\n\r\n"
        half_closed.set()
        rest = await asyncio.to_thread(read_all, link)
    while rest.startswith(interim):
        rest = rest.removeprefix(interim)
    assert rest.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"late" in rest
    assert not stream or rest.endswith(b"0\r\n\r\n")


async def test_a_client_that_stops_sending_mid_stream_gets_the_rest(start: Start) -> None:
    go_on = asyncio.Event()

    async def two(call: FakeCall) -> None:
        await call.send(delta("one"))
        await go_on.wait()
        await call.send(delta("two") + DONE, events=2)
        await call.finish()

    system = await start(scripts=(two,))
    with system.connect() as link:
        link.sendall(chat(stream=True))
        while b"one" not in await asyncio.to_thread(link.recv, 65536):
            continue
        half_close(link)
        assert await asyncio.to_thread(link.recv, 65536) == b"8\r\n: ping\n\n\r\n"
        go_on.set()
        rest = await asyncio.to_thread(read_all, link)
    assert b"two" in rest
    assert rest.endswith(b"0\r\n\r\n")


async def test_pipelined_requests_are_answered_though_the_client_has_stopped_sending(
    start: Start,
) -> None:
    system = await start()
    with system.connect() as link:
        link.sendall(chat() + request("GET", "/livez") + chat(headers="Connection: close\r\n"))
        half_close(link)
        answers = await asyncio.to_thread(read_all, link)
    assert answers.count(b"HTTP/1.1 200 OK\r\n") == 3
