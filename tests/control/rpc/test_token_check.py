"""Strangers are refused by the head and by node agents; TLS where it is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.cluster_security import ClusterSecurity, cluster_security
from penstock.control.errors import CannotStart, Code, NodeUnreachable
from penstock.control.managers.fleet.replica_logs import LogRequest
from penstock.control.outside.dialer import Dialer
from penstock.control.outside.grpc_clients import GrpcAgentClient
from penstock.control.outside.log_client import GrpcAgentLogs
from penstock.control.replica_tokens import replica_token
from penstock.control.rpc.node_agent_service import NodeAgentServer
from penstock.control.rpc.token_check import TokenCheck, carries
from penstock.control.settings import TlsFiles
from penstock.control.state.fleet.memory import MemoryFit
from penstock.control.state.fleet.replica import ReplicaId
from penstock.control.state.stamp import Stamp
from penstock.v1 import inference_pb2, nodes_pb2, nodes_pb2_grpc, routes_pb2, routes_pb2_grpc
from tests.fakes.control_errors import raises_code

TLS = Path(__file__).parents[2] / "fakes" / "tls"
OURS = ClusterSecurity(token="0123abc")


class NoReplicas:
    """A node on which nothing runs; remembers what it was asked to stop."""

    def __init__(self) -> None:
        self.stopped: list[str] = []

    def start(self, spec: nodes_pb2.ReplicaSpec) -> nodes_pb2.ReplicaStatus:
        raise AssertionError("nobody starts anything here")

    def stop(self, replica_id: str, drain: timedelta, *, sleep: bool) -> None:
        self.stopped.append(replica_id)

    def statuses(self) -> list[nodes_pb2.ReplicaStatus]:
        return []

    def registered(self, call: nodes_pb2.RegisterReplicaRequest) -> None:
        raise AssertionError("nobody registers here")

    def keep_adapters(self, replica_id: str, keep: inference_pb2.KeepAdapters) -> None:
        raise AssertionError("nobody keeps anything here")


class NoAdapters:
    """A node that has none."""

    async def content(self, digest: str) -> Path:
        raise AssertionError("nobody asks for adapters here")


class NoSums:
    async def fit(self, spec: nodes_pb2.ReplicaSpec) -> MemoryFit:
        return MemoryFit()


class NoLogs:
    """Nothing is read of it."""

    async def read(
        self, asked: nodes_pb2.ReadLogRequest
    ) -> AsyncGenerator[nodes_pb2.LogPart, None]:
        raise AssertionError("nobody reads logs here")
        yield  # which makes it a generator

    async def read_all(
        self, asked: nodes_pb2.ReadLogsRequest
    ) -> AsyncGenerator[nodes_pb2.LoggedPart, None]:
        raise AssertionError("nobody reads logs here")
        yield


class AnyHead:
    """Whoever knows the token may ask."""

    stamp = Stamp()

    def accept(self, offered: Stamp) -> None:
        pass


class EndlessRoutes(routes_pb2_grpc.RoutesServicer):
    """One call of each kind of streaming."""

    async def Watch(self, request: Any, context: Any) -> AsyncIterator[routes_pb2.RouteSnapshot]:
        yield routes_pb2.RouteSnapshot(version=7)

    async def Report(
        self, requests: Any, context: Any
    ) -> AsyncIterator[routes_pb2.GatewayReportReply]:
        async for _ in requests:
            pass
        yield routes_pb2.GatewayReportReply()


@asynccontextmanager
async def agent(security: ClusterSecurity) -> AsyncIterator[tuple[NoReplicas, NodeAgentServer]]:
    replicas, server = NoReplicas(), NodeAgentServer("127.0.0.1", 0, security)
    await server.serve(replicas, AnyHead(), NoAdapters(), NoLogs(), NoSums())
    yield replicas, server
    await server.stop()


@asynccontextmanager
async def client(port: int, security: ClusterSecurity) -> AsyncIterator[GrpcAgentClient]:
    client = GrpcAgentClient(f"localhost:{port}", Dialer(security))
    yield client
    await client.close()


@asynccontextmanager
async def routes(authorization: str) -> AsyncIterator[routes_pb2_grpc.RoutesStub]:
    server = grpc.aio.server(interceptors=[TokenCheck(authorization)])
    routes_pb2_grpc.add_RoutesServicer_to_server(EndlessRoutes(), server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield routes_pb2_grpc.RoutesStub(channel)  # type: ignore[no-untyped-call]
    await server.stop(None)


async def test_an_agent_obeys_who_has_the_token() -> None:
    async with agent(OURS) as (replicas, server), client(server.port, OURS) as head:
        await head.stop_replica(ReplicaId("r1"), timedelta())
    assert replicas.stopped == ["r1"]


@pytest.mark.parametrize("token", ["", "another", "0123ab"])
async def test_an_agent_takes_nothing_from_strangers(token: str) -> None:
    stranger = ClusterSecurity(token=token)
    async with agent(OURS) as (replicas, server), client(server.port, stranger) as head:
        with pytest.raises(NodeUnreachable, match=r"UNAUTHENTICATED.*--cluster-token-file"):
            await head.stop_replica(ReplicaId("r1"), timedelta())
    assert replicas.stopped == []


async def test_only_who_has_the_token_is_told_where_an_adapter_lies() -> None:
    async with (
        agent(OURS) as (_, server),
        grpc.aio.insecure_channel(f"127.0.0.1:{server.local_port}") as channel,
    ):
        stub = nodes_pb2_grpc.NodeAgentStub(channel)  # type: ignore[no-untyped-call]
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.AdapterContent(nodes_pb2.AdapterContentRequest(digest="a" * 64))
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_a_replicas_own_token_opens_no_log() -> None:
    async with agent(OURS) as (_, server):
        port, shown = server.local_port, replica_token(OURS.token, "", "r1")
        stranger = GrpcAgentLogs(Dialer(ClusterSecurity(token=shown)))
        with pytest.raises(NodeUnreachable, match="UNAUTHENTICATED"):
            await anext(stranger.read(f"127.0.0.1:{port}", ReplicaId("r1"), LogRequest(9)))


async def test_streams_of_strangers_are_refused_at_once() -> None:
    async with routes(OURS.authorization) as stub:
        watch = stub.Watch(routes_pb2.WatchRoutesRequest())
        report = stub.Report()  # never sends anything
        for call in (watch.read(), report.read()):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                async with asyncio.timeout(10):
                    await call
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_streams_of_ours_are_served() -> None:
    async with routes(OURS.authorization) as stub:
        metadata = Dialer(OURS).metadata
        watch = stub.Watch(routes_pb2.WatchRoutesRequest(), metadata=metadata)
        assert (await watch.read()).version == 7
        report = stub.Report(metadata=metadata)
        await report.done_writing()
        assert await report.read() == routes_pb2.GatewayReportReply()


@given(st.lists(st.tuples(st.text(max_size=3), st.text() | st.binary()), max_size=3))
def test_no_metadata_of_strangers_passes(metadata: list[tuple[str, str | bytes]]) -> None:
    metadata = [(key or "authorization", value) for key, value in metadata]
    assert not carries(metadata, OURS.authorization)


def test_two_tokens_are_one_too_many() -> None:
    ours = ("authorization", OURS.authorization)
    assert carries([ours], OURS.authorization)
    assert not carries([ours, ours], OURS.authorization)
    assert not carries(None, OURS.authorization)


def test_a_token_is_in_no_text_of_ours() -> None:
    assert OURS.token not in repr(OURS)


async def test_tls_goes_from_head_to_agent_and_replicas_have_a_port_of_their_own() -> None:
    served = cluster_security(None, TlsFiles(cert=TLS / "server.pem", key=TLS / "server.key"))
    dialled = cluster_security(None, TlsFiles(ca=TLS / "ca.pem"))
    async with agent(served) as (replicas, server):
        async with client(server.port, dialled) as head:
            await head.stop_replica(ReplicaId("r1"), timedelta())
        async with client(server.port, ClusterSecurity()) as plain:
            with pytest.raises(NodeUnreachable):
                await plain.stop_replica(ReplicaId("r2"), timedelta())
        assert server.local_port != server.port
        async with client(server.local_port, ClusterSecurity()) as replica:
            await replica.stop_replica(ReplicaId("r3"), timedelta())
    assert replicas.stopped == ["r1", "r3"]


def test_a_certificate_without_its_key_is_refused() -> None:
    with raises_code(Code.INVALID_SETTING, match="--tls-cert is given without --tls-key"):
        TlsFiles(cert=TLS / "server.pem")


def test_files_that_are_no_certificates_are_named(tmp_path: Path) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("junk")
    for files in (TlsFiles(cert=junk, key=junk), TlsFiles(ca=junk), TlsFiles(ca=tmp_path / "no")):
        with pytest.raises(CannotStart, match=r"--tls-.*cannot be used"):
            cluster_security(None, files)
