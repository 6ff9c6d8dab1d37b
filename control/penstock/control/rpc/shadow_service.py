"""Shadow: hears from gateways what shadows answered, and has them ask what the comparer asks."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import grpc

from penstock.control.errors import Unavailable
from penstock.v1 import shadow_pb2, shadow_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]
Ask = Callable[[shadow_pb2.ShadowQuestion], Awaitable[shadow_pb2.ShadowReply]]
Reply = asyncio.Future[shadow_pb2.ShadowReply]
Count = Callable[[shadow_pb2.ShadowBatch, Ask], Awaitable[None]]


class ShadowService(shadow_pb2_grpc.ShadowServicer):
    """shadow.proto, service Shadow. `count` returns once a batch is on disk."""

    def __init__(self, count: Count) -> None:
        self._count = count

    async def Record(
        self, requests: AsyncIterator[shadow_pb2.ShadowBatch], context: Context
    ) -> None:
        """Counts batches in the order in which they come."""
        line = Line(context.write)
        try:
            async for batch in requests:
                line.take(batch.replies)
                if batch.number:
                    await self._count(batch, line.ask)
                    await line.send(shadow_pb2.ShadowRecorded(number=batch.number))
        finally:
            line.end()


class Line:
    """A gateway's stream as questions go: out with one message, back with another."""

    def __init__(self, write: Callable[[shadow_pb2.ShadowRecorded], Awaitable[None]]) -> None:
        self._write = write
        self._writing = asyncio.Lock()  # one message at a time
        self._name = secrets.token_hex(4)  # a reply on a later stream is to nobody's question
        self._asked = 0
        self._open: dict[str, Reply] = {}
        self._ended = False

    async def send(self, message: shadow_pb2.ShadowRecorded) -> None:
        """Sends it when its turn comes."""
        async with self._writing:
            await self._write(message)

    async def ask(self, question: shadow_pb2.ShadowQuestion) -> shadow_pb2.ShadowReply:
        """Has the gateway ask, and waits for what it comes to. Raises `Unavailable` where the
        stream ends before."""
        if self._ended:
            raise Unavailable("the gateway's stream has ended")
        self._asked += 1
        number = f"{self._name}-{self._asked}"
        reply: Reply = asyncio.get_running_loop().create_future()
        self._open[number] = reply
        try:
            question.id = number
            await self._send_question(question)
            return await reply
        finally:
            del self._open[number]

    async def _send_question(self, question: shadow_pb2.ShadowQuestion) -> None:
        try:
            await self.send(shadow_pb2.ShadowRecorded(questions=[question]))
        except (grpc.aio.BaseError, grpc.aio.UsageError, asyncio.InvalidStateError) as error:
            raise Unavailable(f"the gateway's stream has ended: {error}") from error

    def take(self, replies: Iterable[shadow_pb2.ShadowReply]) -> None:
        """The gateway says what questions came to."""
        for each in replies:
            reply = self._open.get(each.id)
            if reply is not None and not reply.done():
                reply.set_result(each)

    def end(self) -> None:
        """The stream has ended: nothing comes back any more."""
        self._ended = True
        for reply in self._open.values():
            if not reply.done():
                reply.set_exception(Unavailable("the gateway's stream has ended"))
