"""Ways to ask, and the ends that an answer can come to: what the tests of ends are made of."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from penstock.v1 import common_pb2 as common
from tests.fakes.fake_replica import FakeCall, Script
from tests.fakes.spoken import CHAT, MESSAGES, RESPONSES, SPOKEN, Spoken
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import System

FLAGS = ("--drain-ms", "300", "--write-timeout-ms", "700")
BIG = "x" * 60_000
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Seen:
    """What came on a connection up to its end."""

    data: bytes
    reset: bool

    @property
    def body(self) -> bytes:
        """Everything behind the head, still framed."""
        return self.data.partition(b"\r\n\r\n")[2]

    @property
    def status(self) -> int:
        """Of the answer; 0: there was none."""
        return int(self.data.split()[1]) if self.data.startswith(b"HTTP/1.1 ") else 0

    @property
    def whole(self) -> bool:
        """By HTTP's rules for the end of a body; without chunks or length a reset tells."""
        head = self.data.partition(b"\r\n\r\n")[0].lower()
        if b"transfer-encoding: chunked" in head:
            return self.body.endswith(b"\r\n0\r\n\r\n") or self.body == b"0\r\n\r\n"
        if b"content-length: " in head:
            length = int(head.partition(b"content-length: ")[2].split(b"\r\n")[0])
            return len(self.body) == length
        return bool(head) and not self.reset


@dataclass(frozen=True, slots=True)
class Way:
    """How the client asks."""

    stream: bool
    version: str = "1.1"
    headers: str = ""
    spoken: Spoken = CHAT

    def request(self) -> bytes:
        """The whole request."""
        body = json.dumps(self.spoken.body | {"stream": self.stream}).encode()
        head = f"POST {self.spoken.path} HTTP/{self.version}\r\nHost: localhost\r\n{self.headers}"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body


WAYS = {
    "chunked": Way(stream=True),
    "HTTP/1.0": Way(stream=True, version="1.0"),
    "Connection: close": Way(stream=True, headers="Connection: close\r\n"),
    "unary": Way(stream=False, headers="Connection: close\r\n"),
}
DIALECTS = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES}


def read_to_the_end(link: socket.socket) -> Seen:
    """A naive reader."""
    data = b""
    try:
        while part := link.recv(65536):
            data += part
    except (
        ConnectionResetError,
        ssl.SSLEOFError,
    ):  # the latter: TLS says that something is missing
        return Seen(data, reset=True)
    return Seen(data, reset=False)


Released = asyncio.Event
Scripted = Callable[[Released], Script]  # what it waits for once its client has the first event


def first_of(call: FakeCall) -> bytes:
    """A stream up to its first text."""
    spoken = SPOKEN[call.request.path]
    return spoken.begin + spoken.text("first")


def half_an_answer(_: Released) -> Script:
    """The first event, or nothing of a unary answer, and then silence."""

    async def script(call: FakeCall) -> None:
        if call.streamed:
            await call.send(first_of(call))
        await call.cancelled.wait()

    return script


async def answer_well(call: FakeCall) -> None:
    """A whole answer."""
    spoken = SPOKEN[call.request.path]
    await call.send(first_of(call) + spoken.end if call.streamed else spoken.unary)
    await call.finish()


def flood(_: Released) -> Script:
    """More than any socket takes."""

    async def script(call: FakeCall) -> None:
        while call.streamed:
            await call.send(SPOKEN[call.request.path].text(BIG))
        for _ in range(100):
            await call.send(b" " * MIB)
        await call.finish()

    return script


def ended_by_engine(code: str) -> Scripted:
    """Half an answer, and then the engine is gone."""
    error = common.ErrorDetail(
        status=503,
        type="server_error",
        code=code,
        message="the engine ended",
        fault=common.FAULT_UPSTREAM,
        retry=common.RETRY_NEVER,
    )

    def scripted(released: Released) -> Script:
        async def script(call: FakeCall) -> None:
            if call.streamed:
                await call.send(first_of(call))
            await released.wait()
            await call.fail(error)

        return script

    return scripted


async def nothing(system: System) -> None:
    """The replica does it all by itself."""


async def lose_replica(system: System) -> None:
    """Its process is gone."""
    await system.replicas[0].die()


async def drain(system: System) -> None:
    """Longer than the gateway waits."""
    system.gateway.terminate()


async def kill(system: System) -> None:
    """Without a word."""
    os.kill(system.gateway.pid, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class End:
    """How the answer ends."""

    scripted: Scripted
    then: Callable[[System], Awaitable[None]] = nothing
    told: bool = True  # the client can still be told: an error event, or a status
    reads_late: bool = False


def ended_too_early(released: Released) -> Script:
    """The replica says that it is done; nobody has seen the end."""

    async def script(call: FakeCall) -> None:
        await call.send(first_of(call))
        await released.wait()
        await call.finish()

    return script


ENDS = {
    "replica lost": End(half_an_answer, lose_replica),
    "engine dead": End(ended_by_engine("engine_dead")),
    "engine hung": End(ended_by_engine("engine_hung")),
    "drain deadline": End(half_an_answer, drain),
    "gateway killed": End(half_an_answer, kill, told=False),
    "client slow": End(flood, told=False, reads_late=True),
}


async def see(system: System, way: Way, end: End, released: Released) -> Seen:
    """One answer, from the request to the end of its connection."""
    with system.connect() as link:
        link.sendall(way.request())
        await until(lambda: system.replicas[0].calls, "the call arrives")
        begun = b""
        while way.stream and b"first" not in begun and not end.reads_late:
            begun += await asyncio.to_thread(link.recv, 65536)
        released.set()
        await end.then(system)
        if end.reads_late:
            settled = "request settled"
            await until(lambda: system.gateway.find_log(settled), "the gateway gives up")
        rest = await asyncio.to_thread(read_to_the_end, link)
        return Seen(begun + rest.data, rest.reset)
