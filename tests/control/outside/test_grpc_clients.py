"""The head's dialled connections, against real servers."""

from __future__ import annotations

import asyncio
import socket
from datetime import timedelta
from typing import Any

import grpc
import pytest

from penstock.control.errors import NodeUnreachable, ReplicaRefused
from penstock.control.outside.dialer import Dialer
from penstock.control.outside.grpc_clients import GrpcAgentClient, GrpcReplicaPinger
from penstock.control.placement.agents import AgentPlacement
from penstock.control.placement.placement import order_for
from penstock.control.state.deployment import created
from penstock.control.state.health import Ping
from penstock.control.state.replica import NodeFacts, ReplicaId, ReplicaState
from penstock.v1 import inference_pb2, inference_pb2_grpc
from tests.fakes.control_agent import AnsweringReplica, serving_agent
from tests.fakes.control_values import NOON, UID, node, replica, spec

ORDER = order_for(created(spec(), NOON, uid=UID), replica("r9"))


class HangingReplica(AnsweringReplica):
    """Takes the call, never answers."""

    async def Health(self, request: Any, context: Any) -> inference_pb2.HealthReply:
        await asyncio.Event().wait()
        return inference_pb2.HealthReply()


def facts(address: str) -> NodeFacts:
    return NodeFacts(node().id, agent_address=address)


async def test_an_order_reaches_the_agent_and_its_status_comes_back() -> None:
    placement = AgentPlacement(lambda address: GrpcAgentClient(address, Dialer()))
    async with serving_agent() as agent:
        status = await placement.start(facts(agent.address), ORDER)
        again = await placement.start(facts(agent.address), ORDER)
        await placement.stop(facts(agent.address), ReplicaId("r9"), timedelta(seconds=1))
    await placement.close()
    assert (status.replica_id, status.state) == ("r9", ReplicaState.READY)
    assert again == status
    assert agent.stopped == ["r9"]


async def test_a_refusal_is_told_from_an_agent_that_is_away() -> None:
    placement = AgentPlacement(lambda address: GrpcAgentClient(address, Dialer()))
    async with serving_agent() as agent:
        agent.refuse = "no such engine"
        with pytest.raises(ReplicaRefused, match="no such engine"):
            await placement.start(facts(agent.address), ORDER)
    with pytest.raises(NodeUnreachable, match=agent.address):
        await placement.start(facts(agent.address), ORDER)
    with pytest.raises(NodeUnreachable, match="stop a replica"):
        await placement.stop(facts(agent.address), ReplicaId("r9"), timedelta())
    await placement.close()


@pytest.mark.parametrize(
    ("servicer", "found"),
    [(AnsweringReplica(), Ping.ANSWERED), (HangingReplica(), Ping.TIMED_OUT)],
)
async def test_a_ping_tells_an_answer_from_a_hang(servicer: AnsweringReplica, found: Ping) -> None:
    server = grpc.aio.server()
    inference_pb2_grpc.add_InferenceServicer_to_server(  # type: ignore[no-untyped-call]
        servicer, server
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    assert (
        await GrpcReplicaPinger(timedelta(seconds=0.3), Dialer()).ping(f"127.0.0.1:{port}") is found
    )
    await server.stop(None)


async def test_a_ping_where_nothing_listens_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    assert await GrpcReplicaPinger(timedelta(seconds=3), Dialer()).ping(address) is Ping.REFUSED
