"""The ear of a node agent: what the head asks of it, and where its replicas announce themselves."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import grpc
import grpc.aio

from penstock.control.cluster_security import OPEN, ClusterSecurity
from penstock.control.errors import (
    ForeignHead,
    InvalidInput,
    NotFound,
    PenstockError,
    Unavailable,
)
from penstock.control.rpc.ports import open_port
from penstock.control.rpc.token_check import AgentTokenCheck
from penstock.control.rpc.wire import cluster_stamp, fit_reply, stamp
from penstock.control.state.fleet.memory import MemoryFit
from penstock.control.state.stamp import Stamp
from penstock.v1 import inference_pb2, nodes_pb2, nodes_pb2_grpc

CODES = {
    # The head asks again: a later order has a later stamp, and after a take-over it is right.
    ForeignHead: grpc.StatusCode.FAILED_PRECONDITION,
    InvalidInput: grpc.StatusCode.INVALID_ARGUMENT,
    NotFound: grpc.StatusCode.NOT_FOUND,
    Unavailable: grpc.StatusCode.UNAVAILABLE,
}
# Two agents on one port would each hear half: the second is to fail instead.
SERVER_OPTIONS = [("grpc.so_reuseport", 0)]
# What is there for replicas, which show tokens of their own.
FOR_REPLICAS = frozenset(
    f"/penstock.v1.NodeAgent/{method}" for method in ("RegisterReplica", "AdapterContent")
)
LOOPBACK = "127.0.0.1"


class Replicas(Protocol):
    """The replicas of this node."""

    def start(self, spec: nodes_pb2.ReplicaSpec) -> nodes_pb2.ReplicaStatus:
        """Starts one, or tells of it. Raises `InvalidInput` and `Unavailable`."""

    def stop(self, replica_id: str, drain: timedelta, *, sleep: bool) -> None:
        """Begins to stop one, or to put it to sleep."""

    def statuses(self) -> list[nodes_pb2.ReplicaStatus]:
        """All of them."""

    def registered(self, call: nodes_pb2.RegisterReplicaRequest) -> None:
        """One announces itself, or what it holds. Raises `unknown-replica`."""

    def keep_adapters(self, replica_id: str, keep: inference_pb2.KeepAdapters) -> None:
        """One is to hold these from now on. Raises `unknown-replica` and `InvalidInput`."""


class AdapterDirectories(Protocol):
    """Where adapters lie on this machine."""

    async def content(self, digest: str) -> Path:
        """The directory of a content, checked just now. Raises `InvalidInput`, `NotFound` and
        `Unavailable`."""


class Logs(Protocol):
    """What the node's processes logged."""

    def read(self, asked: nodes_pb2.ReadLogRequest) -> AsyncGenerator[nodes_pb2.LogPart, None]:
        """A log, the first part at once. Raises `unknown-replica`, `InvalidInput` and
        `Unavailable`."""

    def read_all(
        self, asked: nodes_pb2.ReadLogsRequest
    ) -> AsyncGenerator[nodes_pb2.LoggedPart, None]:
        """What all processes of the machine logged. Raises `Unavailable`."""


class Fitting(Protocol):
    """What memory replicas would find here."""

    async def fit(self, spec: nodes_pb2.ReplicaSpec) -> MemoryFit:
        """The sum of a replica beside what is free."""


class Allegiance(Protocol):
    """Whose orders are taken."""

    def accept(self, offered: Stamp) -> None:
        """Raises `ForeignHead` for orders of others."""

    @property
    def stamp(self) -> Stamp:
        """The newest that was accepted."""


class NodeAgentService(nodes_pb2_grpc.NodeAgentServicer):
    """Serves nodes.proto's NodeAgent. Runs on the agent's loop; no call blocks
    it.

    `StopReplica` answers at once: heartbeats tell of the draining, and then name it no longer.
    """

    def __init__(
        self,
        replicas: Replicas,
        allegiance: Allegiance,
        adapters: AdapterDirectories,
        logs: Logs,
        fitting: Fitting,
        callers: AgentTokenCheck,
    ) -> None:
        self._replicas = replicas
        self._allegiance = allegiance
        self._adapters = adapters
        self._logs = logs
        self._fitting = fitting
        self._callers = callers

    async def StartReplica(
        self, request: nodes_pb2.StartReplicaRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> nodes_pb2.ReplicaStatus:
        """Starts a replica. Idempotent by its id."""
        async with explained(context):
            self._allegiance.accept(stamp(request.stamp))
            status = self._replicas.start(request.spec)
        return status

    async def StopReplica(
        self, request: nodes_pb2.StopReplicaRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> nodes_pb2.StopReplicaReply:
        """Begins to drain and stop a replica, or to put it to sleep; one that is not there is
        stopped already."""
        async with explained(context):
            self._allegiance.accept(stamp(request.stamp))
        drain = timedelta(milliseconds=request.drain_ms)
        self._replicas.stop(request.replica_id, drain, sleep=request.sleep)
        return nodes_pb2.StopReplicaReply()

    async def ListReplicas(
        self, request: nodes_pb2.ListReplicasRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> nodes_pb2.ListReplicasReply:
        """Every replica of the node, whole."""
        async with explained(context):
            self._allegiance.accept(stamp(request.stamp))
        return nodes_pb2.ListReplicasReply(
            replicas=self._replicas.statuses(), stamp=cluster_stamp(self._allegiance.stamp)
        )

    async def RegisterReplica(
        self, request: nodes_pb2.RegisterReplicaRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> nodes_pb2.RegisterReplicaReply:
        """Lets a replica serve that we started; all others are told to stop."""
        caller = self._callers.replica_in(context.invocation_metadata())
        if caller and caller != request.replica_id:
            speaks = f"replica {caller} speaks for itself alone, not for {request.replica_id!r}"
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, speaks)
        async with explained(context):
            self._replicas.registered(request)
        return nodes_pb2.RegisterReplicaReply()

    async def KeepAdapters(
        self, request: nodes_pb2.KeepAdaptersRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> nodes_pb2.KeepAdaptersReply:
        """Remembers what a replica is to hold; the replica hears of it as soon as it can."""
        async with explained(context):
            self._allegiance.accept(stamp(request.stamp))
            self._replicas.keep_adapters(request.replica_id, request.keep)
        return nodes_pb2.KeepAdaptersReply()

    async def AdapterContent(
        self, request: nodes_pb2.AdapterContentRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> nodes_pb2.AdapterContentReply:
        """Answers once the content lies here whole; that may take as long as fetching it does."""
        async with explained(context):
            directory = await self._adapters.content(request.digest)
        return nodes_pb2.AdapterContentReply(directory=str(directory))

    async def ReadLog(
        self, request: nodes_pb2.ReadLogRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[nodes_pb2.LogPart]:
        """Sends no faster than it is taken, which holds up nobody else."""
        async with explained(context), aclosing(self._logs.read(request)) as parts:
            async for part in parts:
                yield part

    async def ReadLogs(
        self, request: nodes_pb2.ReadLogsRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[nodes_pb2.LoggedPart]:
        """Likewise."""
        async with explained(context), aclosing(self._logs.read_all(request)) as parts:
            async for part in parts:
                yield part

    async def Fit(
        self, request: nodes_pb2.FitRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> nodes_pb2.FitReply:
        """What a replica would take here; starts nothing, so anybody in the cluster may ask."""
        async with explained(context):
            fit = await self._fitting.fit(request.spec)
        return fit_reply(fit)


@asynccontextmanager
async def explained(context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[None]:
    """Ends the call where an error comes, with the gRPC code that says whose fault it is."""
    try:
        yield
    except PenstockError as error:
        codes = (code for kind, code in CODES.items() if isinstance(error, kind))
        await context.abort(next(codes, grpc.StatusCode.INTERNAL), str(error))


class NodeAgentServer:
    """The gRPC server of a node agent. Its ports are known before it serves.

    `port` is the head's way in. `local_port` is that of the node's own replicas, which speak no
    TLS: another one, on the loopback, where `port` is served with TLS. `agent_id`: what replicas'
    tokens are made for. Raises `AddressTaken`.
    """

    def __init__(
        self, host: str, port: int, security: ClusterSecurity = OPEN, agent_id: str = ""
    ) -> None:
        self._callers = AgentTokenCheck(security, agent_id, FOR_REPLICAS)
        checks = [self._callers] if security.token else []
        self._server = grpc.aio.server(options=SERVER_OPTIONS, interceptors=checks)
        advice = "it is taken or not ours: give the node agent another --listen"
        self.port = open_port(self._server, f"{host}:{port}", security.server, advice=advice)
        self.local_port = self.port
        if security.server is not None:
            self.local_port = open_port(self._server, f"{LOOPBACK}:0", None, advice=advice)

    async def serve(
        self,
        replicas: Replicas,
        allegiance: Allegiance,
        adapters: AdapterDirectories,
        logs: Logs,
        fitting: Fitting,
    ) -> None:
        """Answers from now on."""
        nodes_pb2_grpc.add_NodeAgentServicer_to_server(  # type: ignore[no-untyped-call]  # by protoc
            NodeAgentService(replicas, allegiance, adapters, logs, fitting, self._callers),
            self._server,
        )
        await self._server.start()

    async def stop(self) -> None:
        """Ends running calls and gives the port back."""
        await self._server.stop(grace=None)
