"""The life of a connection: keep-alive, pipelining, slow and vanishing clients, browsers."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from contextlib import AsyncExitStack

import pytest

from tests.fakes.fake_replica import FakeCall, hang, unary_chat
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import CHAT, RawClient, chat, request

BODY = json.dumps(CHAT).encode()
PAGE = "Origin: https://chat.example\r\n"


async def test_a_connection_takes_many_requests(system: System) -> None:
    async with system.client() as client:
        for i in range(10):
            answer = await client.ask(chat(stream=i % 2 == 0))
            assert answer.status == 200
            assert not answer.cut_off


async def test_pipelined_requests_are_answered_in_order(start: Start) -> None:
    async def echo(call: FakeCall) -> None:
        await call.send(unary_chat(call.json["user"]))
        await call.finish()

    system = await start(scripts=(echo,))
    async with system.client() as client:
        await client.send(
            chat(user="a") + request("GET", "/livez") + chat(user="b") + request(body=b"bad")
        )
        first, live, second, bad = [await client.response() for _ in range(4)]
    assert b'"content": "a"' in first.body
    assert live.status == 200
    assert b'"content": "b"' in second.body
    assert bad.status == 400


async def test_an_error_leaves_the_connection_usable(system: System) -> None:
    async with system.client() as client:
        assert (await client.ask(request(body=b"nonsense"))).status == 400
        assert (await client.ask(request("GET", "/nothing"))).status == 404
        assert (await client.ask(chat(model="maxi"))).status == 404
        assert (await client.ask(chat())).status == 200


async def test_connection_close_is_honoured(system: System) -> None:
    async with system.client() as client:
        answer = await client.ask(chat(headers="Connection: close\r\n"))
        assert answer.status == 200
        assert answer.headers["connection"] == "close"
        assert await client.closed()


async def test_http_1_0_gets_a_body_that_ends_with_the_connection(system: System) -> None:
    async with system.client() as client:
        head = f"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: {len(BODY)}\r\n\r\n"
        await client.send(head.encode() + BODY)
        status, headers = await client.head()
        assert status == 200
        assert "transfer-encoding" not in headers
        assert await client.exactly(int(headers["content-length"])) == unary_chat("Hello")
        assert await client.closed()


async def test_expect_100_continue_gets_its_continue(system: System) -> None:
    head, _, body = chat(headers="Expect: 100-continue\r\n").partition(b"\r\n\r\n")
    async with system.client() as client:
        await client.send(head + b"\r\n\r\n")
        assert (await client.head())[0] == 100
        await client.send(body)
        assert (await client.response()).status == 200


async def test_expect_100_continue_is_refused_when_the_body_would_be_too_large(
    system: System,
) -> None:
    async with system.client() as client:
        length = "Expect: 100-continue\r\nContent-Length: 30000000\r\n"
        await client.send(request(headers=length))
        assert (await client.response()).status == 413


async def test_head_gets_the_headers_alone(system: System) -> None:
    async with system.client() as client:
        get = await client.ask(request("GET", "/v1/models"))
        head = await client.ask(request("HEAD", "/v1/models"), "HEAD")
        assert head.status == 200
        assert head.headers["content-length"] == get.headers["content-length"]
        assert (await client.ask(request("GET", "/livez"))).status == 200


async def test_every_answer_has_a_request_id(system: System) -> None:
    for data in (
        request("GET", "/livez"),
        request("GET", "/nothing"),
        request("OPTIONS"),
        chat(),
        b"GARBAGE\r\n\r\n",
    ):
        method = "OPTIONS" if data.startswith(b"OPTIONS") else "GET"
        answer = await system.ask(data, method)
        assert answer.headers["x-request-id"].startswith("req_")


async def test_headers_over_the_limit_are_431(system: System) -> None:
    async with system.client() as client:
        await client.send(chat(headers=f"X-Large: {'y' * 40_000}\r\n"))
        answer = await client.response()
        assert answer.status == 431
        assert answer.error["type"] == "invalid_request_error"
        assert await client.closed()
    many = "".join(f"X-{i}: y\r\n" for i in range(10_000))
    assert (await system.ask(chat(headers=many))).status == 431


async def test_a_head_that_never_ends_is_431(system: System) -> None:
    async with system.client() as client:
        await client.send(b"GET / HTTP/1.1\r\nX: " + b"y" * 100_000)
        assert (await client.response()).status == 431


async def test_headers_that_trickle_are_408(start: Start) -> None:
    system = await start("--header-timeout-ms", "300")
    async with system.client() as client:
        await client.send(b"POST /v1/chat/completions HTTP/1.1\r\nHo")
        answer = await client.response()
        assert answer.status == 408
        assert answer.error["type"] == "timeout_error"
        assert answer.headers["x-should-retry"] == "true"
        assert await client.closed()


async def test_a_body_that_trickles_is_408(start: Start) -> None:
    system = await start("--body-timeout-ms", "300")
    async with system.client() as client:
        await client.send(chat()[:-10])
        assert (await client.response()).status == 408
        assert await client.closed()


async def test_an_idle_connection_is_closed_without_a_word(start: Start) -> None:
    system = await start("--idle-timeout-ms", "300")
    async with system.client() as client:
        assert (await client.ask(chat())).status == 200
        assert await client.closed()


async def test_connections_over_the_limit_are_told_so(start: Start) -> None:
    system = await start("--threads", "1", "--max-connections", "2", scripts=(hang,))
    async with system.client() as one, system.client() as two:
        await one.send(chat())
        await two.send(chat())
        await until(lambda: len(system.replicas[0].calls) == 2, "both have a call")
        async with system.client() as three:
            refused = await three.ask(chat())
            assert refused.status == 503
            assert refused.error["code"] == "overloaded"
            assert "retry-after" in refused.headers
            assert await three.closed()


async def test_who_waits_gives_way_at_the_limit_and_the_silent_first(start: Start) -> None:
    system = await start("--threads", "1", "--max-connections", "3", scripts=(hang,))
    async with system.client() as idle, system.client() as silent, system.client() as busy:
        assert (await idle.ask(request("GET", "/livez"))).status == 200
        await busy.send(chat())
        await until(lambda: system.replicas[0].calls, "the call arrives")
        connected = time.monotonic()
        await until(lambda: time.monotonic() > connected + 1.2, "the silent one is no newcomer")
        async with system.client() as fourth:
            assert (await fourth.ask(request("GET", "/livez"))).status == 200
            assert await silent.closed()
            async with system.client() as fifth:
                assert (await fifth.ask(request("GET", "/livez"))).status == 200
                assert await idle.closed()
        assert not system.replicas[0].calls[0].cancelled.is_set()


@pytest.mark.parametrize("threads", ["1", "4"])
async def test_at_the_limit_a_burst_of_newcomers_takes_the_places_of_idle_clients(
    start: Start, threads: str
) -> None:
    system = await start("--threads", threads, "--max-connections", "20")
    async with AsyncExitStack() as stack:
        idle = [await stack.enter_async_context(system.client()) for _ in range(20)]
        for client in idle:
            assert (await client.ask(request("GET", "/livez"))).status == 200
        newcomers = [await stack.enter_async_context(system.client()) for _ in range(20)]
        assert all([await client.closed() for client in idle])
        # Not before: who has been answered is idle, too, for a newcomer that its thread takes late.
        answers = [await client.ask(chat()) for client in newcomers]
        assert [answer.status for answer in answers] == [200] * 20


async def test_a_connection_that_never_asks_is_closed_soon(start: Start) -> None:
    system = await start("--header-timeout-ms", "300")
    async with system.client() as client:
        assert await client.closed()


async def test_requests_over_the_limit_are_told_so(start: Start) -> None:
    released = asyncio.Event()

    async def wait(call: FakeCall) -> None:
        await released.wait()
        await call.send(unary_chat("at last"))
        await call.finish()

    system = await start("--threads", "1", "--max-in-flight", "1", scripts=(wait,))
    async with system.client() as one:
        await one.send(chat())
        await until(lambda: system.replicas[0].calls, "the first call arrives")
        refused = await system.ask(chat())
        assert refused.status == 503
        assert refused.headers["x-penstock-drop-reason"] == "gateway_full"
        released.set()
        assert (await one.response()).status == 200
    assert (await system.ask(chat())).status == 200


async def test_no_descriptor_is_lost(start: Start) -> None:
    system = await start("--threads", "1")
    before = system.gateway.open_files()
    for i in range(100):
        async with system.client() as client:
            await client.send(chat(stream=True) if i % 3 else b"GARBAGE\r\n\r\n")
            if i % 2:
                await client.response()
            else:
                client.leave()
    # What it keeps are a few connections to the head and to the replica.
    await until(lambda: system.gateway.open_files() < before + 10, "all sockets are closed")


async def test_a_request_for_another_host_is_421_and_its_body_is_not_taken(start: Start) -> None:
    system = await start("--allow-host", "api.example")
    data = chat().replace(b"Host: localhost", b"Host: attacker.example")
    async with system.client() as client:
        refused = await client.ask(data)
        assert refused.status == 421
        assert "--allow-host" in refused.error["message"]
        assert await client.closed()
    assert not system.replicas[0].calls
    for host in (b"api.example:443", b"127.0.0.1", b"[::1]:80", b"LOCALHOST"):
        named = chat().replace(b"Host: localhost", b"Host: " + host)
        assert (await system.ask(named)).status == 200


def full_name() -> str:
    """What the system's resolver calls this machine."""
    found = socket.getaddrinfo(socket.gethostname(), None, flags=socket.AI_CANONNAME)
    return found[0][3]


async def test_the_machines_full_name_is_served(system: System) -> None:
    named = chat().replace(b"Host: localhost", b"Host: " + full_name().encode())

    async def is_served() -> bool:
        return (await system.ask(named)).status == 200

    async with asyncio.timeout(20):  # it is looked up beside the start
        while not await is_served():
            continue


@pytest.mark.parametrize(("metrics", "status"), [("127.0.0.1:0", 421), ("0.0.0.0:0", 200)])
async def test_the_status_port_is_scraped_under_any_name_only_beyond_loopback(
    start: Start, metrics: str, status: int
) -> None:
    system = await start("--metrics", metrics)
    scrape = request("GET", "/metrics").replace(b"localhost", b"gateway.prod.svc.cluster.local")
    async with RawClient(system.gateway.status_port) as client:
        assert (await client.ask(scrape)).status == status
        assert (await client.ask(request("GET", "/metrics", headers=PAGE))).status == 403
    assert (await system.ask(scrape)).status == 421
