"""Serves Router on the loopback, and says where, once it can answer."""

from __future__ import annotations

import asyncio
import hmac
import json
import os
from collections.abc import Collection
from contextlib import suppress
from typing import Any, Final

import grpc
import grpc.aio

from penstock.control.router.asks import Conversation, Programs
from penstock.v1 import router_pb2, router_pb2_grpc

MOST_FRAME: Final = 64 << 20  # bytes: a prompt's text, where the program sees tokens
MOST_STREAMS: Final = 256
OPTIONS: Final = (
    ("grpc.max_receive_message_length", MOST_FRAME),
    ("grpc.max_concurrent_streams", MOST_STREAMS),
    ("grpc.so_reuseport", 0),
)


class RouterService(router_pb2_grpc.RouterServicer):
    """Router of router.proto, for who shows the token."""

    def __init__(self, programs: Programs, token: str) -> None:
        self._programs = programs
        self._authorization = f"Bearer {token}".encode()

    async def Route(self, _: object, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        """One stream of a gateway."""
        if not self._admits(context):
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "another program's token, or none")
        # A stream that breaks is an end like any other.
        with suppress(grpc.aio.BaseError, asyncio.InvalidStateError, ExceptionGroup):
            async with asyncio.TaskGroup() as tasks:
                talk = Conversation(self._programs, tasks)
                answering = tasks.create_task(_answer(talk, context))
                try:
                    while isinstance(frame := await context.read(), router_pb2.GatewayFrame):
                        talk.receive(frame)
                finally:
                    talk.close()
                    answering.cancel()

    def _admits(self, context: grpc.aio.ServicerContext[Any, Any]) -> bool:
        shown = [
            value for key, value in context.invocation_metadata() or () if key == "authorization"
        ]
        given = shown[0] if len(shown) == 1 else ""
        given = given.encode() if isinstance(given, str) else given
        return hmac.compare_digest(given, self._authorization)


async def _answer(talk: Conversation, context: grpc.aio.ServicerContext[Any, Any]) -> None:
    while True:
        await context.write(await talk.next_frame())


async def serve(programs: Programs, token: str, port: int = 0) -> tuple[grpc.aio.Server, int]:
    """Starts to serve at that port of the loopback; 0: at a free one."""
    server = grpc.aio.server(options=OPTIONS)
    router_pb2_grpc.add_RouterServicer_to_server(  # type: ignore[no-untyped-call]
        RouterService(programs, token), server
    )
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    return server, port


def announce(file: int, port: int, token: str, digests: Collection[str]) -> None:
    """Says where it is asked, and by which token, to the agent that started it. The file stays
    open: whoever renews its time says that the process is well."""
    told = {
        "address": f"127.0.0.1:{port}",
        "token": token,
        "digests": sorted(digests),
        "pid": os.getpid(),
    }
    os.write(file, json.dumps(told).encode())
