"""Calls from a node to the head."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Self

import grpc
import grpc.aio

from penstock.control.errors import NotAdmitted, NotFound, TokenRefused, Unavailable
from penstock.control.outside.dialer import Dialer
from penstock.v1 import nodes_pb2, nodes_pb2_grpc

TIMEOUT_SECONDS = 5.0
# The head comes back within a second or two; gRPC's own pauses would grow to two minutes.
CHANNEL_OPTIONS = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
]

_KINDS: Mapping[grpc.StatusCode, type[Unavailable]] = {
    grpc.StatusCode.UNAUTHENTICATED: TokenRefused,
    grpc.StatusCode.FAILED_PRECONDITION: NotAdmitted,
}


class HeadClient:
    """A `HeadLink`, an `AdapterSource` and a `ProgramSource` over one gRPC channel, which connects
    again by itself. Use as a context manager."""

    def __init__(self, address: str, dialer: Dialer) -> None:
        self._address = address
        self._metadata = dialer.metadata
        self._channel = dialer.channel(address, CHANNEL_OPTIONS)
        self._nodes = nodes_pb2_grpc.NodesStub(self._channel)  # type: ignore[no-untyped-call]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close(grace=None)

    async def register(self, request: nodes_pb2.RegisterNodeRequest) -> nodes_pb2.RegisterNodeReply:
        """Makes this node known. Raises `Unavailable`, or of that kind `TokenRefused` or
        `NotAdmitted`."""
        reply: nodes_pb2.RegisterNodeReply = await self._told(self._nodes.Register, request)
        return reply

    async def heartbeat(self, request: nodes_pb2.HeartbeatRequest) -> nodes_pb2.HeartbeatReply:
        """Tells how the node is. Raises as `register` does."""
        reply: nodes_pb2.HeartbeatReply = await self._told(self._nodes.Heartbeat, request)
        return reply

    async def fetch_adapter(self, digest: str) -> AsyncGenerator[nodes_pb2.AdapterPiece, None]:
        """The pieces of an adapter's content. Raises `NotFound`, or as `register` does."""
        request = nodes_pb2.FetchAdapterRequest(digest=digest)
        call = self._nodes.FetchAdapter(request, metadata=self._metadata)
        try:
            async for piece in call:
                yield piece
        except grpc.aio.AioRpcError as error:
            raise self._missing(error) from error
        finally:
            call.cancel()

    async def fetch_program(self, digest: str) -> bytes:
        """The text of a router program. Raises `NotFound`, or as `register` does."""
        try:
            reply: nodes_pb2.FetchProgramReply = await self._nodes.FetchProgram(
                nodes_pb2.FetchProgramRequest(digest=digest),
                timeout=TIMEOUT_SECONDS,
                metadata=self._metadata,
            )
        except grpc.aio.AioRpcError as error:
            raise self._missing(error) from error
        return reply.text

    async def _told(self, call: Any, request: Any) -> Any:
        try:
            return await call(request, timeout=TIMEOUT_SECONDS, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise self._unavailable(error) from error

    def _missing(self, error: grpc.aio.AioRpcError) -> NotFound | Unavailable:
        if error.code() is grpc.StatusCode.NOT_FOUND:
            return NotFound(str(error.details()))
        return self._unavailable(error)

    def _unavailable(self, error: grpc.aio.AioRpcError) -> Unavailable:
        kind = _KINDS.get(error.code(), Unavailable)
        return kind(f"head at {self._address}: {error.code().name}: {error.details()}")
