"""A router program's process whose programs the test writes: the Router service over real gRPC."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from penstock.v1 import router_pb2 as v1
from penstock.v1 import router_pb2_grpc as services
from tests.fakes.fake_replica import authorization_of
from tests.fakes.fake_server import FakeServer

TOKEN = "f" * 32


@dataclass(slots=True)
class Asked:
    """One question as a program sees it."""

    ask: v1.RouteAsk
    write: Callable[[v1.ProgramFrame], Awaitable[None]]
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    _replies: dict[int, asyncio.Future[v1.EngineReply]] = field(default_factory=dict)
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    async def engine(self, verb: v1.EngineVerb, replica: str, **fields: Any) -> v1.EngineReply:
        """What an engine does for it; an error is in the reply."""
        call_id = next(self._ids)
        reply: asyncio.Future[v1.EngineReply] = asyncio.get_running_loop().create_future()
        self._replies[call_id] = reply
        call = v1.EngineCall(
            ask_id=self.ask.ask_id, call_id=call_id, verb=verb, replica_id=replica, **fields
        )
        await self.write(v1.ProgramFrame(calls=[call]))
        return await reply

    async def decide(self, replica: str = "", **fields: Any) -> None:
        """Its decision; empty: the gateway's own policy."""
        decision = v1.RouteDecision(ask_id=self.ask.ask_id, replica_id=replica, **fields)
        await self.write(v1.ProgramFrame(decisions=[decision]))

    def take(self, reply: v1.EngineReply) -> None:
        """An engine's reply has come."""
        self._replies.pop(reply.call_id).set_result(reply)


Program = Callable[[Asked], Awaitable[None]]


async def to_the_last(asked: Asked) -> None:
    """Sends each request to the engine that was named last."""
    await asked.decide(asked.ask.engines[-1].replica_id)


class FakeRouter(FakeServer, services.RouterServicer):
    """Serves from `async with` on; `program` may be changed at any time."""

    def __init__(self, program: Program = to_the_last) -> None:
        super().__init__()
        self.program = program
        self.asked: list[Asked] = []
        self.streams = 0
        self.authorizations: list[str] = []

    def _serve_on(self, server: grpc.aio.Server) -> None:
        services.add_RouterServicer_to_server(self, server)  # type: ignore[no-untyped-call]

    def announce(self, folder: Path, digest: str, uid: str = "mini") -> None:
        """Tells gateways where it is, and what it runs."""
        folder.mkdir(exist_ok=True)
        seat = {"address": self.address, "token": TOKEN, "digests": [digest], "pid": 1}
        new = folder / f"{uid}.new"
        new.write_text(json.dumps(seat))
        new.rename(folder / f"{uid}.json")

    async def Route(
        self,
        request_iterator: AsyncIterator[v1.GatewayFrame],
        context: grpc.aio.ServicerContext[v1.GatewayFrame, v1.ProgramFrame],
    ) -> None:
        """One stream: each question runs the program in a task of its own."""
        self.streams += 1
        self.authorizations.append(authorization_of(context))
        lock = asyncio.Lock()

        async def write(frame: v1.ProgramFrame) -> None:
            async with lock:
                await context.write(frame)

        open_asks: dict[int, Asked] = {}
        async with asyncio.TaskGroup() as group:
            async for frame in request_iterator:
                for ask in frame.asks:
                    asked = open_asks[ask.ask_id] = Asked(ask, write)
                    self.asked.append(asked)
                    group.create_task(_run(self.program, asked))
                for reply in frame.replies:
                    open_asks[reply.ask_id].take(reply)
                for ask_id in frame.cancels:
                    open_asks[ask_id].cancelled.set()


async def _run(program: Program, asked: Asked) -> None:
    await program(asked)
