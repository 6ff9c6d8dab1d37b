"""Streams that are read byte by byte while replicas die, and what they would have been.

What an answer is follows from its request: it is asked for once while nothing dies, as fast as it
goes. A stream is the same if all its bytes are, apart from comments, its id and when it was made.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import grpc

from penstock.control.replica_tokens import callers_token
from penstock.v1 import inference_pb2
from tests.e2e.loads import metric
from tests.e2e.streams import until
from tests.e2e.system import System
from tests.fakes.replica_process import inference_stub

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
LONG = 70_000  # bytes of a body that is read on a side thread
_HAD_ENOUGH = 60.0  # seconds that a client waits for all of its answer
_UNPACED = {"tokens_per_second": 0, "ttft_ms": 0}
_NAMES = re.compile(rb'"id":"(?:chat)?cmpl-([^"]+)".*?"created":(\d+)', re.DOTALL)


@dataclass(frozen=True)
class Ask:
    """A request whose answer is known."""

    number: int  # of its prompt
    path: str = CHAT
    model: str = "sim"
    usage: bool = False  # include_usage
    metadata: bool = False
    long: bool = False
    stream: bool = True
    tokens: int = 100
    simulate: tuple[tuple[str, int], ...] = ()

    def request(self) -> bytes:
        """As it goes over a connection of its own."""
        text = f"story {self.number}" + " on" * (LONG // 3 if self.long else 0)
        fields: dict[str, Any] = {"model": self.model, "stream": self.stream}
        fields["max_tokens"] = self.tokens
        if self.path == CHAT:
            fields["messages"] = [{"role": "user", "content": text}]
        else:
            fields["prompt"] = text
        if self.usage:
            fields["stream_options"] = {"include_usage": True}
        if self.simulate:
            fields["simulate"] = dict(self.simulate)
        body = json.dumps(fields).encode()
        more = "x-penstock-metadata: include\r\n" if self.metadata else ""
        head = f"POST {self.path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    def at_once(self) -> Ask:
        """The same, as fast as it goes."""
        return replace(self, simulate=tuple(_UNPACED.items()))


def asks(count: int, *, adapter: str = "", **more: Any) -> list[Ask]:
    """So many of all kinds, each with a prompt of its own. `adapter`: some are for that."""
    kinds: list[dict[str, Any]] = [
        {},
        {"usage": True},
        {"path": COMPLETIONS},
        {"path": COMPLETIONS, "usage": True, "metadata": True},
        {"metadata": True},
        {"model": f"sim:{adapter}" if adapter else "sim"},
        {"usage": True, "metadata": True},
        {"long": True},
    ]
    return [Ask(number, **kinds[number % len(kinds)] | more) for number in range(count)]


@dataclass
class Seen:
    """What a client has read of one answer."""

    ask: Ask
    raw: bytearray = field(default_factory=bytearray)
    ended: bool = False
    left: bool = False
    error: str = ""

    @property
    def head(self) -> str:
        """Of the reply."""
        return bytes(self.raw).partition(b"\r\n\r\n")[0].decode()

    @property
    def request_id(self) -> str:
        """As the gateway's log has it."""
        found = re.search(r"(?im)^x-request-id: (\S+)", self.head)
        assert found, self.head
        return found[1]

    def begun(self, events: int) -> bool:
        """Whether so many have come, or no more will."""
        return self.ended or self.raw.count(b"data: ") >= events

    def body(self) -> bytes:
        """All of it; fails where the connection does not say that it is whole."""
        head, _, rest = bytes(self.raw).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), (self.error, bytes(self.raw)[:2000])
        if b"chunked" not in head:
            return rest
        parts: list[bytes] = []
        while True:
            size, _, rest = rest.partition(b"\r\n")
            assert size, f"cut short behind {b''.join(parts)[-300:]!r}"
            length = int(size, 16)
            if length == 0:
                return b"".join(parts)
            parts.append(rest[:length])
            rest = rest[length + 2 :]

    def events(self) -> list[bytes]:
        """Whole events, without comments."""
        body = self.body()
        assert body.endswith(b"\n\n"), body[-300:]
        blocks = body.split(b"\n\n")[:-1]
        assert all(block.startswith((b"data: ", b":")) for block in blocks), "an event is split"
        return [block for block in blocks if not block.startswith(b":")]

    def said(self) -> bytes:
        """What is the same each time that this is asked."""
        if not self.ask.stream:
            return _nameless(self.body())
        return _nameless(b"\n\n".join(one for one in self.events() if b'"penstock":' not in one))

    def metadata(self) -> dict[str, Any]:
        """What the gateway says of the request."""
        (told,) = [one for one in self.events() if b'"penstock":' in one]
        found: dict[str, Any] = json.loads(told.removeprefix(b"data: "))["penstock"]
        return found


def _nameless(body: bytes) -> bytes:
    """Its id and its time, as the first event has them, are left out wherever they stand."""
    named = _NAMES.search(body)
    assert named, body[:300]
    return body.replace(named[1], b"ID").replace(b'"created":' + named[2], b'"created":AT')


async def read(
    port: int, seen: Seen, *, window: int = 0, hold: asyncio.Event | None = None
) -> None:
    """Reads an answer to its end. `window`: bytes that its socket takes; with `hold` it reads on
    behind the first bytes when that is set."""
    with socket.socket() as link:
        if window:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        link.setblocking(False)
        await asyncio.get_running_loop().sock_connect(link, ("127.0.0.1", port))
        reader, writer = await asyncio.open_connection(sock=link.dup(), limit=max(window, 4096))
    try:
        writer.write(seen.ask.request())
        async with asyncio.timeout(_HAD_ENOUGH):
            while data := await reader.read(1 << 16):
                seen.raw += data
                if hold is not None:
                    await hold.wait()
    except (OSError, TimeoutError) as error:
        seen.error = repr(error)
    except asyncio.CancelledError:
        seen.left = True
    finally:
        seen.ended = True
        writer.transport.abort()


async def undisturbed(port: int, all_asks: Iterable[Ask]) -> dict[Ask, bytes]:
    """What each of them is answered while nothing dies."""
    said: dict[Ask, bytes] = {}
    turns = asyncio.Semaphore(16)

    async def ask_once(ask: Ask) -> None:
        async with turns:
            seen = Seen(ask.at_once())
            await read(port, seen)
            said[ask] = seen.said()

    async with asyncio.TaskGroup() as group:
        for ask in set(all_asks):
            group.create_task(ask_once(ask))
    return said


@asynccontextmanager
async def reading(
    port: int, all_asks: Sequence[Ask], *, begun: int = 3, **how: Any
) -> AsyncIterator[list[Seen]]:
    """All of them under way, each some events old; read to their ends at the end of the block."""
    seen = [Seen(ask) for ask in all_asks]
    async with asyncio.TaskGroup() as group:
        for one in seen:
            group.create_task(read(port, one, **how))
        await until(
            lambda: all(one.begun(begun) for one in seen), within=60, what="streams under way"
        )
        assert not any(one.ended for one in seen), [one.error for one in seen if one.ended]
        yield seen


def differing(seen: Iterable[Seen], known: dict[Ask, bytes]) -> list[str]:
    """What is wrong with those that are not what they would have been."""
    wrong = []
    for one in seen:
        try:
            same = not one.error and one.said() == known[one.ask]
            why = (
                ""
                if same
                else f"{one.error} {one.said()[-400:]!r} is not {known[one.ask][-400:]!r}"
            )
        except AssertionError as error:
            why = str(error)
        if why:
            wrong.append(f"{one.ask}: {why}")
    return wrong


def share(values: Sequence[float], part: float) -> float:
    """A quantile."""
    return sorted(values)[min(int(part * len(values)), len(values) - 1)]


@dataclass(frozen=True)
class Resumed:
    """One time that an answer went on at another replica, as the gateway's log has it."""

    request_id: str
    at: datetime  # its next event came


def resumed(system: System) -> list[Resumed]:
    """All of them so far, in order."""
    lines = [
        json.loads(line)
        for log in system.data.rglob("gateway-*.log")
        for line in log.read_text().splitlines()
        if "goes on at another replica" in line
    ]
    return [Resumed(line["request_id"], datetime.fromisoformat(line["time"])) for line in lines]


def is_idle(system: System) -> bool:
    """Whether nobody has anything left of any request."""
    held = metric(system, "penstock_gateway_held_bytes", of="resumes")
    if held or any(metric(system, f"penstock_gateway_{name}") for name in ("in_flight", "queued")):
        return False
    try:
        return all(load.running == load.waiting == load.calls == 0 for load in loads(system))
    except grpc.RpcError:  # the head has yet to hear that one is gone
        return False


def loads(system: System) -> list[inference_pb2.Load]:
    """What the replicas tell of themselves."""
    cluster = (system.data / "cluster.token").read_text().strip()
    told = []
    for replica in system.replicas():
        bearer = f"Bearer {callers_token(cluster, replica['id'])}"
        with inference_stub(replica["address"]) as stub:
            watch = stub.WatchLoad(
                inference_pb2.WatchLoadRequest(watcher_id="test"),
                metadata=(("authorization", bearer),),
                timeout=10,
            )
            told.append(next(iter(watch)))
            watch.cancel()
    return told


def busiest(system: System) -> dict[str, Any]:
    """The replica that has most to do."""
    replicas: list[dict[str, Any]] = system.replicas()
    works = dict(
        zip((r["id"] for r in replicas), (one.running for one in loads(system)), strict=True)
    )
    return max(replicas, key=lambda replica: works[replica["id"]])
