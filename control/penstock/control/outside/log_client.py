"""Reads logs at the agents that keep them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from datetime import timedelta
from typing import Any, Final

import grpc
from google.protobuf.message import Message

from penstock.control.errors import (
    Code,
    InvalidInput,
    NodeUnreachable,
    NotFound,
    PenstockError,
    Unavailable,
)
from penstock.control.machine_logs.values import (
    Author,
    LoggedLine,
    LoggedPart,
    LogQuestion,
)
from penstock.control.managers.fleet.replica_logs import LogPart, LogRequest
from penstock.control.outside.dialer import Dialer
from penstock.control.state.fleet.replica import ReplicaId
from penstock.v1 import nodes_pb2, nodes_pb2_grpc

# The agent says something each five seconds, if only that it is there.
SILENT_AFTER: Final = timedelta(seconds=15)


class GrpcAgentLogs:
    """Each reader through a connection of its own: one that reads slowly holds up no order."""

    def __init__(self, dialer: Dialer, silent_after: timedelta = SILENT_AFTER) -> None:
        self._dialer = dialer
        self._silent_after = silent_after.total_seconds()

    async def read(
        self, address: str, replica_id: ReplicaId, asked: LogRequest
    ) -> AsyncGenerator[LogPart, None]:
        """A log, the first part at once. Raises `unknown-replica`, `InvalidInput` and
        `Unavailable`, at any moment."""
        request = nodes_pb2.ReadLogRequest(replica_id=replica_id, **asked._asdict())
        async with aclosing(self._parts(address, lambda stub: stub.ReadLog, request)) as parts:
            async for part in parts:
                yield LogPart(part.lines, part.note)

    async def read_all(self, address: str, asked: LogQuestion) -> AsyncGenerator[LoggedPart, None]:
        """What all processes of a machine wrote. Raises `Unavailable`, at any moment."""
        request = nodes_pb2.ReadLogsRequest(**asked._asdict())
        async with aclosing(self._parts(address, lambda stub: stub.ReadLogs, request)) as parts:
            async for part in parts:
                yield _part(part)

    async def _parts(
        self, address: str, method: Callable[[nodes_pb2_grpc.NodeAgentStub], Any], request: Message
    ) -> AsyncGenerator[Any, None]:
        channel = self._dialer.channel(address, [("grpc.use_local_subchannel_pool", 1)])
        try:
            stub = nodes_pb2_grpc.NodeAgentStub(channel)  # type: ignore[no-untyped-call]
            parts = aiter(method(stub)(request, metadata=self._dialer.metadata))
            while part := await self._next(parts):
                yield part
        except TimeoutError:
            raise NodeUnreachable(
                f"the node agent at {address} has said nothing for {self._silent_after:g} s"
            ) from None
        except grpc.aio.AioRpcError as error:
            raise _explained(error, address) from error
        finally:
            await channel.close(grace=None)  # and with it the call

    async def _next(self, parts: AsyncIterator[Any]) -> Any:
        async with asyncio.timeout(self._silent_after):
            return await anext(parts, None)


def _part(told: nodes_pb2.LoggedPart) -> LoggedPart:
    lines = [
        LoggedLine(Author(line.kind, line.name), line.time_us, line.level, line.text)
        for line in told.lines
    ]
    return LoggedPart(lines, told.note, told.caught_up, tuple(told.gateways))


def _explained(error: grpc.aio.AioRpcError, address: str) -> PenstockError:
    match error.code():
        case grpc.StatusCode.NOT_FOUND:
            return NotFound(str(error.details()), Code.UNKNOWN_REPLICA)
        case grpc.StatusCode.INVALID_ARGUMENT:
            return InvalidInput(str(error.details()))
        case grpc.StatusCode.UNIMPLEMENTED:
            return Unavailable(
                f"the node agent at {address} is of an older version, which shows no logs:"
                " `log_path` of the replica says where it lies"
            )
    return NodeUnreachable(
        f"the node agent at {address} does not go on: {error.code().name} {error.details()}"
    )
