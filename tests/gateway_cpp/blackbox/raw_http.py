"""HTTP/1.1 by hand: framing tests say exactly which bytes go out and see which come back."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any

PATIENCE = 20.0  # seconds for anything that should happen at once
CHAT = {"model": "mini", "messages": [{"role": "user", "content": "hi"}]}


@dataclass(frozen=True, slots=True)
class Response:
    """One whole answer."""

    status: int
    headers: dict[str, str]
    body: bytes
    cut_off: bool = False  # the connection ended before the body did

    @property
    def error(self) -> dict[str, Any]:
        """The OpenAI error in the body, which must have exactly its four keys."""
        assert self.headers["content-type"].startswith("application/json"), self
        parsed = json.loads(self.body)
        assert parsed.keys() == {"error"}, self
        error: dict[str, Any] = parsed["error"]
        assert error.keys() == {"message", "type", "param", "code"}, self
        assert error["message"], self
        assert error["type"], self
        return error


def request(
    method: str = "POST",
    path: str = "/v1/chat/completions",
    body: bytes | None = None,
    headers: str = "",
) -> bytes:
    """A request with its Content-Length; `headers` are further lines, each with its CRLF."""
    text = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}"
    if body is not None:
        text += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return text.encode() + b"\r\n" + (body or b"")


def chat(headers: str = "", **fields: object) -> bytes:
    """A chat request with further fields in its body."""
    return request(body=json.dumps(CHAT | fields).encode(), headers=headers)


class RawClient:
    """One connection."""

    def __init__(
        self, port: int, *, receive_buffer: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        self._port = port
        self._tls = tls
        self._receive_buffer = receive_buffer  # bytes; 0: what the system gives
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def __aenter__(self) -> RawClient:
        link = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        link.setblocking(False)
        if self._receive_buffer:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer)
        await asyncio.get_running_loop().sock_connect(link, ("127.0.0.1", self._port))
        # A small limit: what the test does not read stays in the kernel, as with a slow client.
        name = "127.0.0.1" if self._tls else None
        self._reader, self._writer = await asyncio.open_connection(
            sock=link, limit=4096, ssl=self._tls, server_hostname=name
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except (ConnectionError, ssl.SSLError):
            return  # the gateway was faster

    async def send(self, data: bytes) -> None:
        """Sends as much as the gateway takes: it may have answered and closed already."""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except ConnectionError:
            return

    def leave(self) -> None:
        """Breaks the connection off."""
        self._writer.transport.abort()

    async def line(self) -> bytes:
        """One line with its end; empty at the end of the connection, a reset included."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self._reader.readline()
            except ConnectionError:
                return b""

    async def exactly(self, size: int) -> bytes:
        """That many bytes, or what came before the connection ended."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self._reader.readexactly(size)
            except asyncio.IncompleteReadError as cut:
                return cut.partial
            except ConnectionError:
                return b""

    async def head(self) -> tuple[int, dict[str, str]]:
        """Status and headers of the next answer; names in lower case."""
        status, *lines = await self._head_lines() or [b""]
        assert status.startswith(b"HTTP/1.1 "), status
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.decode().partition(":")
            assert name.lower() not in headers, f"twice: {name}"
            headers[name.lower()] = value.strip()
        return int(status.split()[1]), headers

    async def _head_lines(self) -> list[bytes]:
        """All before the empty one, without their ends; fewer where the connection ends. A timeout
        for each would take longer than to read them."""
        lines: list[bytes] = []
        async with asyncio.timeout(PATIENCE):
            with suppress(ConnectionError):
                while line := (await self._reader.readline()).rstrip(b"\r\n"):
                    lines.append(line)
        return lines

    async def chunk(self) -> bytes | None:
        """The next chunk of a chunked body; empty: the clean end; None: cut off."""
        size_line = await self.line()
        if not size_line.endswith(b"\r\n"):
            return None
        size = int(size_line, 16)
        data = await self.exactly(size + 2)
        if len(data) != size + 2:
            return None
        assert data.endswith(b"\r\n")
        return data[:-2]

    async def response(self, method: str = "POST") -> Response:
        """The next whole answer."""
        status, headers = await self.head()
        if method == "HEAD" or status in (204, 304):
            return Response(status, headers, b"")
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while data := await self.chunk():
                body += data
            return Response(status, headers, body, cut_off=data is None)
        size = int(headers["content-length"])
        body = await self.exactly(size)
        return Response(status, headers, body, cut_off=len(body) < size)

    async def ask(self, data: bytes, method: str = "POST") -> Response:
        """Sends a request and reads its answer."""
        await self.send(data)
        return await self.response(method)

    async def closed(self) -> bool:
        """Waits until the gateway ends the connection; False if it says something first."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self._reader.read(1) == b""
            except ConnectionError:
                return True
