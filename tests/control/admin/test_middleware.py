"""What never reaches a handler: foreign names and pages, other types, bodies without end."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import psutil
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.control.admin.hosts import check_host, check_origin
from penstock.control.admin.middleware import BODY_LIMIT
from penstock.control.admin.server import AdminServer
from penstock.control.errors import Code
from penstock.control.settings import TlsFiles
from tests.control.admin.app_harness import SECRET, Admin, assert_problem, bearer, running_admin
from tests.fakes.control_errors import raises_code

DEPLOYMENTS = "/admin/v1/deployments"
MINI = {"name": "mini", "engine": "simulated", "model": "penstock-mini"}
TLS = Path(__file__).parents[2] / "fakes" / "tls"


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin(hosts=("ops.example",)) as admin:
        yield admin


@asynccontextmanager
async def served(admin: Admin, tls: TlsFiles = TlsFiles()) -> AsyncIterator[int]:  # noqa: B008
    """The app on a real port."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = AdminServer(admin.app, listener, tls)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.run_until_stopped())
        yield listener.getsockname()[1]
        server.stop()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A raw connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    yield reader, writer
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def test_a_page_whose_name_points_here_gets_nothing(admin: Admin) -> None:
    for host in ("evil.example", "evil.example:8081", "localhost.evil.example", "10.0.0.1", ""):
        reply = await admin.client.get(DEPLOYMENTS, headers={"host": host})
        assert_problem(reply, 421, "--allow-host")
        assert_problem(await admin.client.get("/docs", headers={"host": host}), 421)
        body = await admin.client.post(DEPLOYMENTS, json=MINI, headers={"host": host})
        assert_problem(body, 421)
    assert not admin.cluster.view().deployments


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:8081", "127.0.0.1:1", "[::1]:8081", "ops.example", "ops.example.:9"],
)
async def test_our_own_names_and_those_we_were_told_are_answered(admin: Admin, host: str) -> None:
    assert (await admin.client.get(DEPLOYMENTS, headers={"host": host})).status_code == 200


def test_the_address_that_a_connection_reached_is_a_name_of_ours() -> None:
    check_host("10.1.2.3:8081", "10.1.2.3", ())
    check_host("[fe80::1]:8081", "fe80::1", ())
    with raises_code(Code.MISDIRECTED):
        check_host("10.1.2.4:8081", "10.1.2.3", ())


@given(st.text(max_size=30))
@example("[::1]")
@example("localhost.:1")
def test_no_text_but_our_names_is_a_host_of_ours(text: str) -> None:
    name = re.sub(r":[0-9]+\Z", "", text.lower()).rstrip(".")
    if name in ("localhost", "127.0.0.1", "[::1]", "10.0.0.1"):
        return
    with raises_code(Code.MISDIRECTED):
        check_host(text, "10.0.0.1", ())


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "", "http://localhost:3000", "https://localhost.evil.example"],
)
async def test_a_page_from_elsewhere_is_refused_though_it_has_a_token(
    admin: Admin, origin: str
) -> None:
    reply = await admin.client.post(DEPLOYMENTS, json=MINI, headers={"origin": origin})
    assert_problem(reply, 403, "Origin")
    assert not admin.cluster.view().deployments


async def test_our_own_pages_and_those_of_an_allowed_name_are_served(admin: Admin) -> None:
    for origin in ("http://localhost", "https://ops.example"):
        reply = await admin.client.get(DEPLOYMENTS, headers={"origin": origin})
        assert reply.status_code == 200


@given(st.text(max_size=30))
def test_no_text_but_our_own_is_an_origin_of_ours(origin: str) -> None:
    if origin.lower().partition("://")[2].partition("/")[0] == "localhost:8081":
        return
    with raises_code(Code.FORBIDDEN):
        check_origin(origin, "localhost:8081", ())


@pytest.mark.parametrize("said", ["text/plain", "application/x-www-form-urlencoded", "json", ""])
async def test_a_body_that_is_not_called_json_is_refused(admin: Admin, said: str) -> None:
    headers = {"content-type": said}
    reply = await admin.client.post(DEPLOYMENTS, content=b"{}", headers=headers)
    assert_problem(reply, 415, "application/json")


async def test_json_with_a_charset_is_json(admin: Admin) -> None:
    headers = {"content-type": "Application/JSON; charset=utf-8"}
    reply = await admin.client.post(DEPLOYMENTS, content=b'{"name": "a"}', headers=headers)
    assert_problem(reply, 422, "model")


async def test_a_body_over_the_limit_is_refused_unread_and_costs_no_memory(admin: Admin) -> None:
    async with served(admin) as port, connected(port) as (reader, writer):
        writer.write(head(port, f"Content-Length: {600 << 20}"))
        assert b" 413 " in await reader.readline()


async def test_a_chunked_body_without_end_is_cut_off_at_the_limit(admin: Admin) -> None:
    before = psutil.Process().memory_info().rss
    async with served(admin) as port, connected(port) as (_, writer):
        writer.write(head(port, "Transfer-Encoding: chunked"))
        sent = await pour(writer, b"10000\r\n" + b" " * 0x10000 + b"\r\n", limit=256 << 20)
        assert sent < 64 << 20
    assert psutil.Process().memory_info().rss - before < 64 << 20


async def test_headers_without_end_are_cut_off(admin: Admin) -> None:
    async with served(admin) as port, connected(port) as (_, writer):
        writer.write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
        assert await pour(writer, b"x" * 65_536, limit=256 << 20) < 64 << 20


async def test_a_stranger_is_refused_before_the_body_is_read(admin: Admin) -> None:
    async with served(admin) as port, connected(port) as (reader, writer):
        writer.write(head(port, "Content-Length: 1000", secret="pst_other"))
        async with asyncio.timeout(10):
            assert b" 401 " in await reader.readline()


async def test_an_upgrade_to_a_websocket_is_a_request_like_any_other(admin: Admin) -> None:
    async with served(admin) as port, connected(port) as (reader, writer):
        lines = [
            f"GET {DEPLOYMENTS} HTTP/1.1",
            f"Host: localhost:{port}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        async with asyncio.timeout(10):
            assert b" 401 " in await reader.readline()


async def test_the_api_speaks_tls_where_it_has_a_certificate(admin: Admin) -> None:
    tls = TlsFiles(cert=TLS / "server.pem", key=TLS / "server.key")
    trusted = ssl.create_default_context(cafile=str(TLS / "ca.pem"))
    client = httpx.AsyncClient(verify=trusted, trust_env=False)
    async with served(admin, tls) as port, client:
        url = f"https://localhost:{port}{DEPLOYMENTS}"
        assert (await client.get(url, headers=bearer(SECRET))).json() == []


def test_the_limit_leaves_room_for_every_honest_body() -> None:
    assert BODY_LIMIT >= 1 << 20


def head(port: int, framing: str, *, secret: str = SECRET) -> bytes:
    """The head of a POST."""
    lines = [
        f"POST {DEPLOYMENTS} HTTP/1.1",
        f"Host: localhost:{port}",
        f"Authorization: Bearer {secret}",
        "Content-Type: application/json",
        framing,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


async def pour(writer: asyncio.StreamWriter, piece: bytes, *, limit: int) -> int:
    """Writes pieces until the other side closes; the bytes that it took, at most `limit`."""
    sent = 0
    try:
        while sent < limit:
            writer.write(piece)
            sent += len(piece)
            async with asyncio.timeout(10):
                await writer.drain()
    except (ConnectionError, TimeoutError):
        pass
    return sent
