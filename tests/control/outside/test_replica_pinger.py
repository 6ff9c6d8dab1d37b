"""The head's calls to replicas, against real servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import grpc
import pytest

from penstock.control.outside.dialer import Dialer
from penstock.control.outside.replica_pinger import GrpcReplicaPinger
from penstock.control.state.fleet.pings import Ping
from penstock.control.state.fleet.replica import ReplicaAddress
from penstock.v1 import inference_pb2, inference_pb2_grpc
from tests.fakes.control_agent import AnsweringReplica
from tests.fakes.ports import free_address


class HangingReplica(AnsweringReplica):
    """Takes the call, never answers."""

    async def Health(self, request: Any, context: Any) -> inference_pb2.HealthReply:
        await asyncio.Event().wait()
        return inference_pb2.HealthReply()


class WedgedReplica(AnsweringReplica):
    """Lives, but nothing comes out of its engine."""

    async def Health(self, request: Any, context: Any) -> inference_pb2.HealthReply:
        ok = request.depth != inference_pb2.HEALTH_DEPTH_DEEP
        return inference_pb2.HealthReply(ok=ok, state=inference_pb2.REPLICA_STATE_READY)


class BusyReplica(AnsweringReplica):
    """Says that it cannot be asked for tokens."""

    async def Health(self, request: Any, context: Any) -> inference_pb2.HealthReply:
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "not now")
        return inference_pb2.HealthReply()


@asynccontextmanager
async def served(servicer: AnsweringReplica) -> AsyncIterator[str]:
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    inference_pb2_grpc.add_InferenceServicer_to_server(  # type: ignore[no-untyped-call]
        servicer, server
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(None)


@asynccontextmanager
async def pinger(seconds: float = 3) -> AsyncIterator[GrpcReplicaPinger]:
    made = GrpcReplicaPinger(timedelta(seconds=seconds), Dialer())
    yield made
    await made.close()


@pytest.mark.parametrize(
    ("servicer", "found"),
    [
        (AnsweringReplica(), Ping.ANSWERED),
        (HangingReplica(), Ping.TIMED_OUT),
        (BusyReplica(), Ping.TIMED_OUT),
    ],
)
async def test_a_ping_tells_an_answer_from_a_hang(servicer: AnsweringReplica, found: Ping) -> None:
    async with served(servicer) as address, pinger(0.3) as replicas:
        assert await replicas.ping(ReplicaAddress("r1", address)) is found
        assert await replicas.ping(ReplicaAddress("r1", address)) is found


async def test_only_what_the_machine_itself_refuses_is_refused() -> None:
    address = free_address()
    async with pinger() as replicas:
        assert await replicas.ping(ReplicaAddress("r1", address)) is Ping.REFUSED
        assert await replicas.ping(ReplicaAddress("r1", "no.such.host.invalid:1")) is Ping.TIMED_OUT


async def test_what_speaks_no_grpc_is_not_refused() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    async with server, pinger(1) as replicas:
        assert await replicas.ping(ReplicaAddress("r1", f"{host}:{port}")) is Ping.TIMED_OUT


async def test_a_replica_that_comes_back_is_found_on_a_new_connection() -> None:
    async with pinger() as replicas:
        async with served(AnsweringReplica()) as address:
            assert await replicas.ping(ReplicaAddress("r1", address)) is Ping.ANSWERED
        assert await replicas.ping(ReplicaAddress("r1", address)) is Ping.REFUSED


async def test_a_deep_check_fails_only_where_the_engine_was_asked_and_gave_nothing() -> None:
    async with pinger() as replicas:
        for servicer, generates in (
            (AnsweringReplica(), True),
            (WedgedReplica(), False),
            (BusyReplica(), True),
        ):
            async with served(servicer) as address:
                assert await replicas.deep_check(ReplicaAddress("r1", address)) is generates
