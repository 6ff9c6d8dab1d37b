"""A gateway as a router program's process meets it: it asks, makes engine calls, and may lie."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio

from penstock.control.router.asks import Programs
from penstock.control.router.program import program_of
from penstock.control.router.server import serve
from penstock.v1 import router_pb2_grpc
from penstock.v1.router_pb2 import (
    EngineCall,
    EngineReply,
    EngineView,
    GatewayFrame,
    ProgramFrame,
    RouteAsk,
    RouteDecision,
)

TOKEN = "t0"
Answer = Callable[[EngineCall], EngineReply]


def view(engine_id: str, role: str = "", **more: Any) -> EngineView:
    """An engine that has room and moves KV."""
    return EngineView(
        replica_id=engine_id, role=role, **{"places_left": 8, "moves_kv": True} | more
    )


class RouterGateway:
    """One stream to a program."""

    def __init__(self, stream: Any, address: str, digest: str, answer: Answer) -> None:
        self.stream = stream
        self.address = address
        self.digest = digest
        self.calls: list[EngineCall] = []
        self._answer = answer
        self._decisions: list[RouteDecision] = []
        self.last = 0  # id of the ask before

    async def ask(self, *engines: EngineView, **fields: Any) -> int:
        """Asks; returns the ask's id."""
        self.last += 1
        ask = RouteAsk(
            **{"program_digest": self.digest, "request_id": f"r{self.last}"} | fields,
            ask_id=self.last,
            engines=engines or [view("a"), view("b")],
        )
        await self.send(GatewayFrame(asks=[ask]))
        return self.last

    async def send(self, frame: GatewayFrame) -> None:
        """Any frame."""
        await self.stream.write(frame)

    async def decided(self) -> RouteDecision:
        """The next decision; until then every call is answered."""
        while not self._decisions:
            frame = await self.stream.read()
            assert isinstance(frame, ProgramFrame), "the program ended the stream"
            self.calls += frame.calls
            replies = [self._reply(call) for call in frame.calls]
            if replies:
                await self.send(GatewayFrame(replies=replies))
            self._decisions += frame.decisions
        return self._decisions.pop(0)

    async def decides(self, *engines: EngineView, **fields: Any) -> RouteDecision:
        """Asks and waits for what is decided."""
        asked = await self.ask(*engines, **fields)
        decision = await self.decided()
        assert decision.ask_id == asked
        return decision

    def _reply(self, call: EngineCall) -> EngineReply:
        reply = EngineReply()
        reply.CopyFrom(self._answer(call))
        reply.ask_id, reply.call_id = call.ask_id, call.call_id
        return reply


@asynccontextmanager
async def dialed(
    address: str, digest: str, answer: Answer = lambda _: EngineReply(), token: str = TOKEN
) -> AsyncIterator[RouterGateway]:
    """A stream to a program's process."""
    async with grpc.aio.insecure_channel(address) as channel:
        stub = router_pb2_grpc.RouterStub(channel)  # type: ignore[no-untyped-call]
        stream = stub.Route(metadata=(("authorization", f"Bearer {token}"),))
        yield RouterGateway(stream, address, digest, answer)
        stream.cancel()


@asynccontextmanager
async def routing(
    text: str, answer: Answer = lambda _: EngineReply()
) -> AsyncIterator[RouterGateway]:
    """A gateway before that program, which runs in this process."""
    program = program_of(text)
    programs = Programs()
    programs.add(program)
    server, port = await serve(programs, TOKEN)
    try:
        async with dialed(f"127.0.0.1:{port}", program.digest, answer) as gateway:
            yield gateway
    finally:
        await server.stop(None)


class RouterProcess:
    """A real process of a program."""

    def __init__(self, child: subprocess.Popen[bytes], announced: Path, log: Path) -> None:
        self.child = child
        self.announced = announced
        self.log = log

    async def told(self) -> Mapping[str, Any]:
        """What it announces."""
        async with asyncio.timeout(20):
            while not self.announced.exists() or not self.announced.read_text():
                assert self.child.poll() is None, self.log.read_text()
                await asyncio.sleep(0.01)
        told: Mapping[str, Any] = json.loads(self.announced.read_text())
        return told

    async def ended(self) -> int:
        """Its exit code, at its end."""
        return await asyncio.to_thread(self.child.wait, 20)


def start_router(folder: Path, words: Sequence[str] = (), **env: str) -> RouterProcess:
    """Starts one as an agent does; it ends with this process."""
    announced, log = folder / "uid.json", folder / "router.log"
    argv = [sys.executable, "-P", "-m", "penstock.control.router"]
    argv += ["--announce", str(announced), "--with-parent", str(os.getpid()), *words]
    with log.open("ab") as output:
        child = subprocess.Popen(
            argv, stdout=output, stderr=output, env={**os.environ, **env}, process_group=0
        )
    return RouterProcess(child, announced, log)
