"""Nodes: hears node agents, and hands them adapters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import grpc

from penstock.adapters.shown import shown
from penstock.adapters.version import CONTENT_FILES, Digest
from penstock.control.declared.messages import message_of, value_of
from penstock.control.errors import NotAdmitted, NotFound, StoreUnavailable
from penstock.control.managers.fleet.health import HealthManager
from penstock.control.rpc.wire import (
    cluster_stamp,
    node_facts,
    node_intent,
    replica_status,
    resources,
    stamp,
    warm_pool,
)
from penstock.control.state.fleet.replica import NodeId, ProgramStatus
from penstock.control.state.routing.program_routes import RouterProgram
from penstock.control.state.stamp import Stamp
from penstock.v1 import nodes_pb2, nodes_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]


_PIECE: Final = 1 << 20  # bytes; nodes.proto, `AdapterPiece`


class AdapterDirectories(Protocol):
    """The adapters that are stored here."""

    def directory_of(self, digest: Digest) -> Path | None:
        """Where a content lies; none: it is not stored. Any text may be asked for. Raises
        `StoreUnavailable`."""


@dataclass(frozen=True, slots=True)
class ToldToNodes:
    """What every agent is told with each heartbeat."""

    programs: Callable[[], Sequence[RouterProgram]] = tuple
    program_text: Callable[[str], str | None] = lambda _: None  # by its digest
    router_tokens: Callable[[], Sequence[bytes]] = tuple  # SHA-256s of those that are live


class NodesService(nodes_pb2_grpc.NodesServicer):
    """nodes.proto, service Nodes."""

    def __init__(
        self,
        health: HealthManager,
        heartbeat: timedelta,
        adapters: AdapterDirectories,
        own_stamp: Callable[[], Stamp] = Stamp,
        told: ToldToNodes = ToldToNodes(),
    ) -> None:
        self._told = told
        self._health = health
        self._adapters = adapters
        self._stamp = own_stamp
        self._heartbeat_ms = heartbeat // timedelta(milliseconds=1)

    async def Register(
        self, request: nodes_pb2.RegisterNodeRequest, context: Context
    ) -> nodes_pb2.RegisterNodeReply:
        """Takes in a node, with everything that runs there."""
        facts = node_facts(request.node)
        if not facts.id or not facts.agent_address:
            await context.abort(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"node_id is {facts.id!r} and agent_address {facts.agent_address!r}: name both",
            )
        reports = [replica_status(r) for r in request.replicas]
        try:
            await self._health.node_registered(facts, reports, stamp(request.stamp))
        except NotAdmitted as error:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        return nodes_pb2.RegisterNodeReply(
            heartbeat_ms=self._heartbeat_ms, stamp=cluster_stamp(self._stamp())
        )

    async def Heartbeat(
        self, request: nodes_pb2.HeartbeatRequest, context: Context
    ) -> nodes_pb2.HeartbeatReply:
        """Takes in a node's replicas; an unknown node is told to register."""
        reports = [replica_status(r) for r in request.replicas]
        node_id = NodeId(request.node_id)
        try:
            await self._health.node_observed(
                node_id,
                resources(request.resources),
                reports,
                stamp(request.stamp),
                node_intent(request.intent),
                request.instance,
                warm_pool(request.warm_pool) if request.HasField("warm_pool") else None,
                tuple(value_of(ProgramStatus, each) for each in request.programs),
            )
        except (NotFound, NotAdmitted):  # it hears why when it registers
            return nodes_pb2.HeartbeatReply(unknown=True, stamp=cluster_stamp(self._stamp()))
        return nodes_pb2.HeartbeatReply(
            stamp=cluster_stamp(self._stamp()),
            programs=[message_of(nodes_pb2.RouterProgram, it) for it in self._told.programs()],
            router_tokens=self._told.router_tokens(),
        )

    async def FetchProgram(
        self, request: nodes_pb2.FetchProgramRequest, context: Context
    ) -> nodes_pb2.FetchProgramReply:
        """The text of a router program."""
        text = self._told.program_text(request.digest)
        if text is None:
            why = f"no deployment has a program with the digest {shown(request.digest)}"
            await context.abort(grpc.StatusCode.NOT_FOUND, why)
        return nodes_pb2.FetchProgramReply(text=text.encode())

    async def FetchAdapter(
        self, request: nodes_pb2.FetchAdapterRequest, context: Context
    ) -> AsyncIterator[nodes_pb2.AdapterPiece]:
        """Reads a content as fast as the node takes it, in other threads."""
        digest = Digest(request.digest)
        with ExitStack() as opened:
            try:
                files = await asyncio.to_thread(_opened, self._adapters, digest, opened)
                for name, file in files:
                    while data := await asyncio.to_thread(file.read, _PIECE):
                        yield nodes_pb2.AdapterPiece(file=name, data=data)
                        name = ""
            except FileNotFoundError:
                await context.abort(
                    grpc.StatusCode.NOT_FOUND,
                    f"no adapter with the digest {shown(digest)} is stored: register it again",
                )
            except StoreUnavailable as error:
                await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
            except OSError as error:
                why = f"the head cannot read the adapter {shown(digest)}: {error.strerror}"
                await context.abort(grpc.StatusCode.UNAVAILABLE, why)


def _opened(
    adapters: AdapterDirectories, digest: Digest, stack: ExitStack
) -> list[tuple[str, BinaryIO]]:
    """All files of a content, at once: what is thrown away meanwhile is still sent whole."""
    directory = adapters.directory_of(digest)
    if directory is None:
        raise FileNotFoundError(digest)
    return [(name, stack.enter_context((directory / name).open("rb"))) for name in CONTENT_FILES]
