"""A gateway lives where it answers 200, in time, on a connection of its own."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.control.outside.http_probe import HttpLivenessProbe
from tests.fakes.ports import free_address

TLS = Path(__file__).parents[2] / "fakes" / "tls"
LIVES = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@asynccontextmanager
async def answering(
    answer: bytes, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """The address of one that says this to whoever asks; nothing: it only accepts."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError):  # the probe has left
                await reader.readuntil(b"GET /livez HTTP/1.1\r\n")
                writer.write(answer)
                while await reader.read(1024):
                    pass
        finally:
            writer.transport.abort()
            gone.release()

    gone = asyncio.Semaphore(0)
    server = await asyncio.start_server(serve, host, 0, ssl=tls)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        await gone.acquire()


@pytest.mark.parametrize(
    ("answer", "lives"),
    [(LIVES, True), (b"HTTP/1.1 503 no\r\n\r\n", False), (b"", False), (b"hello\n", False)],
)
async def test_it_lives_where_it_answers_200_in_time(answer: bytes, lives: bool) -> None:
    async with answering(answer) as address:
        assert await HttpLivenessProbe(timedelta(milliseconds=300)).alive(address) is lives


async def test_it_is_asked_at_an_ipv6_address_too() -> None:
    async with answering(LIVES, "::1") as address:
        assert await HttpLivenessProbe().alive(address)


async def test_where_nobody_listens_nobody_lives() -> None:
    assert not await HttpLivenessProbe().alive(free_address())


async def test_over_tls_it_lives_whomever_its_certificate_is_for() -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(TLS / "server.pem", TLS / "server.key")
    async with answering(LIVES, tls=tls) as address:
        assert await HttpLivenessProbe().alive(address, tls=True)
