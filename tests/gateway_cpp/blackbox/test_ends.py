"""The table of ends: however an answer ends, its bytes alone tell whether it is whole.

Each end is seen by a reader that knows nothing but HTTP framing, and some by curl and the openai
SDK. A whole answer ends as HTTP says; a cut one never does, and says why where it can.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import openai
import pytest

from penstock.v1 import common_pb2 as common
from tests.fakes.fake_replica import DONE, FakeCall, Script, delta, last_delta, unary_chat
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import CHAT

FLAGS = ("--drain-ms", "300", "--write-timeout-ms", "700")
BIG = delta("x" * 60_000)
MIB = 1 << 20
CLOSE = b"GET /the-end HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


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

    def request(self) -> bytes:
        """The whole request."""
        body = json.dumps(CHAT | {"stream": self.stream}).encode()
        head = f"POST /v1/chat/completions HTTP/{self.version}\r\nHost: localhost\r\n{self.headers}"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body


WAYS = {
    "chunked": Way(stream=True),
    "HTTP/1.0": Way(stream=True, version="1.0"),
    "Connection: close": Way(stream=True, headers="Connection: close\r\n"),
    "unary": Way(stream=False, headers="Connection: close\r\n"),
}


def read_to_the_end(link: socket.socket) -> Seen:
    """A naive reader."""
    data = b""
    try:
        while part := link.recv(65536):
            data += part
    except ConnectionResetError:
        return Seen(data, reset=True)
    return Seen(data, reset=False)


Released = asyncio.Event
Scripted = Callable[[Released], Script]  # what it waits for once its client has the first event


def half_an_answer(_: Released) -> Script:
    """The first event, or nothing of a unary answer, and then silence."""

    async def script(call: FakeCall) -> None:
        if call.streamed:
            await call.send(delta("first"))
        await call.cancelled.wait()

    return script


async def answer_well(call: FakeCall) -> None:
    """A whole answer."""
    await call.send(delta("first") + last_delta() + DONE if call.streamed else unary_chat("first"))
    await call.finish()


def flood(_: Released) -> Script:
    """More than any socket takes."""

    async def script(call: FakeCall) -> None:
        while call.streamed:
            await call.send(BIG)
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
                await call.send(delta("first"))
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
    with socket.create_connection(("127.0.0.1", system.gateway.port), timeout=20) as link:
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


@pytest.mark.parametrize("way", WAYS)
async def test_a_finished_answer_is_whole(start: Start, way: str) -> None:
    system = await start(*FLAGS, scripts=(answer_well,))
    how = WAYS[way]
    async with system.client() as client:
        await client.send(how.request() + CLOSE)
        data = b""
        while line := await client.line():
            data += line
    first = data.partition(b"HTTP/1.1 404")[0]
    seen = Seen(first, reset=False)
    assert seen.whole
    assert b'"error"' not in first
    assert (DONE in first) == how.stream


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("way", WAYS)
async def test_an_answer_that_is_cut_is_seen_to_be_cut(start: Start, name: str, way: str) -> None:
    end, how = ENDS[name], WAYS[way]
    released = Released()
    system = await start(*FLAGS, scripts=(end.scripted(released),))
    seen = await see(system, how, end, released)
    assert b"[DONE]" not in seen.data
    if not how.stream and end.told:
        assert seen.status >= 500
        assert seen.whole
        assert json.loads(seen.body)["error"]["type"] == "server_error"
        return
    assert not seen.whole, seen
    if end.told:
        assert seen.status == 200
        assert b'data: {"error":{' in seen.body
        assert seen.body.rstrip(b"\r\n").endswith(b"}}")


async def curl(
    system: System, *options: str, on_first: Released | None = None
) -> tuple[int, bytes]:
    """curl's exit code and what it wrote; `on_first` is set when it has written something."""
    body = json.dumps(CHAT | {"stream": True})
    command = ["curl", "-sN", "--max-time", "20", *options, "-d", body]
    command += ["-H", "Content-Type: application/json"]
    command += [f"{system.gateway.base_url}/v1/chat/completions"]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    out = await process.stdout.readline()
    if on_first:
        on_first.set()
    out += await process.stdout.read()
    return await process.wait(), out


@pytest.mark.parametrize("options", [(), ("-0",), ("-H", "Connection: close")], ids=str)
async def test_curl_fails_at_a_cut_stream_and_only_there(
    start: Start, options: tuple[str, ...]
) -> None:
    released = Released()
    system = await start(*FLAGS, scripts=(ended_by_engine("engine_dead")(released),))
    code, out = await curl(system, *options, on_first=released)
    assert code in (18, 56), out  # a part is missing, or the connection was reset
    assert b'"code":"engine_dead"' in out
    system.replicas[0].script = answer_well
    code, out = await curl(system, *options)
    assert code == 0
    assert out.endswith(DONE)


@pytest.mark.parametrize("name", ["replica lost", "engine dead", "drain deadline"])
async def test_the_openai_sdk_raises_at_a_cut_stream(start: Start, name: str) -> None:
    end = ENDS[name]
    released = Released()
    system = await start(*FLAGS, scripts=(end.scripted(released),))
    async with openai.AsyncOpenAI(
        base_url=system.gateway.base_url + "/v1", api_key="none", max_retries=0
    ) as client:
        stream = await client.chat.completions.create(
            model="mini", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        assert (await anext(stream)).choices[0].delta.content == "first"
        released.set()
        await end.then(system)
        with pytest.raises(openai.APIError):
            await anext(stream)


async def test_two_sigterms_and_a_hangup_are_one_drain(start: Start) -> None:
    released = asyncio.Event()

    async def wait(call: FakeCall) -> None:
        await call.send(delta("a"))
        await released.wait()
        await call.send(DONE)
        await call.finish()

    system = await start(scripts=(wait,))
    async with system.client() as running:
        await running.send(Way(stream=True).request())
        await running.head()
        assert await running.chunk() == delta("a")
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGTERM, signal.SIGTERM):
            os.kill(system.gateway.pid, number)
        await until(lambda: system.gateway.find_log("draining"), "it drains")
        os.kill(system.gateway.pid, signal.SIGTERM)
        released.set()
        assert await running.chunk() == DONE
        assert await running.chunk() == b""
    assert await system.gateway.exit_code() == 0


@pytest.mark.parametrize("signals", [(signal.SIGINT, signal.SIGINT), (signal.SIGQUIT,)], ids=str)
async def test_whoever_insists_ends_it_at_once_and_clients_are_told(
    start: Start, signals: tuple[signal.Signals, ...]
) -> None:
    system = await start(scripts=(half_an_answer(Released()),))
    async with system.client() as running:
        await running.send(Way(stream=True).request())
        await running.head()
        assert await running.chunk() == delta("first")
        for number in signals:
            os.kill(system.gateway.pid, number)
            await until(lambda: system.gateway.find_log("draining"), "it drains")
        last = await running.chunk()
        assert last is not None
        assert b'"error"' in last
        assert await running.chunk() is None
    assert await system.gateway.exit_code() == 1
