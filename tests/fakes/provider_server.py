"""An HTTP server that a provider's tests speak with, written by hand so that it can misbehave.

It runs on a thread and a loop of its own. What a scenario does with a request is a coroutine over
the `Wire`; those that a test puts into `next` are used once each, before the usual one.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came; names of headers in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class Wire:
    """The way back to the client."""

    writer: asyncio.StreamWriter
    open: bool = field(default=True)

    async def whole(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        """A body of known length."""
        self._head(status, {"content-length": str(len(body)), **(headers or {})})
        self.writer.write(body)
        await self.writer.drain()

    async def begin(self, content_type: str, headers: Mapping[str, str] | None = None) -> None:
        """The head of a body that comes in portions."""
        fields = {"content-type": content_type, "transfer-encoding": "chunked"}
        self._head(200, {**fields, **(headers or {})})
        await self.writer.drain()

    async def portion(self, data: bytes) -> None:
        """A portion of the body."""
        self.writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await self.writer.drain()

    async def end(self) -> None:
        """The body's true end."""
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    def cut(self) -> None:
        """Breaks the connection."""
        self.open = False
        self.writer.transport.abort()

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = [
            f"HTTP/1.1 {status} Said",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        self.writer.write("\r\n".join([*lines, "", ""]).encode())


Scenario = Callable[[Asked, Wire], Awaitable[None]]


class ProviderServer:
    """Serves from `with` on, with the usual scenario where no other is next."""

    def __init__(self, usual: Scenario) -> None:
        self.next: deque[Scenario] = deque()
        self.asked: list[Asked] = []
        self.connections = 0
        self.running = 0  # requests under way
        self.most_running = 0
        self.left = threading.Event()  # a client went away before its answer's end
        self.port = 0
        self._usual = usual
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._serving: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._listen())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._do(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def go_away(self) -> None:
        """Takes no more connections, and breaks those that it has."""
        self._do(self._close())

    def come_back(self) -> None:
        """Listens again where it did."""
        self._do(self._listen())

    def _do(self, work: Awaitable[None]) -> None:
        async def awaited() -> None:
            await work

        asyncio.run_coroutine_threadsafe(awaited(), self._loop).result(10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, backlog=512)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            for listener in server.sockets:
                self._loop.remove_reader(listener.fileno())
            # Who was accepted in this turn becomes a connection in the next: asyncio loses the
            # socket of one whose server is closed by then.
            await asyncio.sleep(0)
            server.close()
        serving = dict(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        for writer in serving.values():  # of tasks that never began, too
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _stop(self) -> None:
        await self._close()
        # A connection that was being taken while the door closed is on its way to `_accept`.
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others)
        await asyncio.sleep(0)  # a transport that was broken lets go of its socket a turn later

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server is None:
            return writer.transport.abort()
        task = self._loop.create_task(self._serve(reader, writer))
        self._serving[task] = writer
        task.add_done_callback(self._serving.pop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while asked := await _request(reader):
                self.asked.append(asked)
                wire = Wire(writer)
                await self._answer(asked, wire)
                if not wire.open:
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            writer.close()
            with contextlib.suppress(OSError):  # until it is closed, `_close` can break it
                await asyncio.shield(writer.wait_closed())

    async def _answer(self, asked: Asked, wire: Wire) -> None:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await (self.next.popleft() if self.next else self._usual)(asked, wire)
        finally:
            self.running -= 1


async def _request(reader: asyncio.StreamReader) -> Asked | None:
    with contextlib.suppress(asyncio.IncompleteReadError):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {}
        for line in head[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return Asked(method, path, headers, body)
    return None


__all__ = ["Asked", "ProviderServer", "Scenario", "Wire"]
