"""What a replica of a running system holds, and that it opens nothing but what is its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import grpc
import psutil
import pytest

from penstock.control.replica_tokens import CALLERS_TOKEN, REPLICA_TOKEN
from penstock.v1 import (
    inference_pb2,
    inference_pb2_grpc,
    nodes_pb2,
    nodes_pb2_grpc,
    routes_pb2,
    routes_pb2_grpc,
)
from tests.e2e.system import System

REFUSED, FORBIDDEN = grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED


@dataclass(frozen=True)
class Captive:
    """A replica of which everything is known that it could know itself."""

    id: str
    address: str
    process: psutil.Process

    @property
    def environment(self) -> dict[str, str]:
        """What it was started with, as /proc/self/environ shows it."""
        return dict(self.process.environ())


@pytest.fixture
def captives(two_simulated: System) -> list[Captive]:
    """Both replicas."""
    return [
        Captive(each["id"], each["address"], psutil.Process(each["pid"]))
        for each in two_simulated.replicas()
    ]


@pytest.fixture
def agent(two_simulated: System) -> str:
    """Where the agent of the machine listens."""
    return str(two_simulated.admin("nodes")[0]["address"])


@pytest.fixture
def cluster_token(two_simulated: System) -> str:
    """What nobody but head, agents and gateways is to know."""
    return (two_simulated.data / "cluster.token").read_text().strip()


def test_a_replica_is_started_without_the_clusters_token(
    captives: list[Captive], cluster_token: str
) -> None:
    for captive in captives:
        everything = [*captive.process.cmdline(), *captive.environment.values()]
        assert not any(cluster_token in text for text in everything)
        assert not any("cluster.token" in text for text in everything)
        mine = captive.environment[CALLERS_TOKEN], captive.environment[REPLICA_TOKEN]
        assert not any(token in word for token in mine for word in captive.process.cmdline())


def test_no_log_names_a_token(
    two_simulated: System, captives: list[Captive], cluster_token: str
) -> None:
    said = two_simulated.output()
    tokens = [c.environment[name] for c in captives for name in (CALLERS_TOKEN, REPLICA_TOKEN)]
    assert not any(token.rpartition(":")[2] in said for token in (cluster_token, *tokens))


@pytest.mark.parametrize("name", [CALLERS_TOKEN, REPLICA_TOKEN])
def test_nothing_that_a_replica_holds_opens_the_head_or_an_agents_orders(
    two_simulated: System, captives: list[Captive], agent: str, name: str
) -> None:
    token = captives[0].environment[name]
    for address, ask in _orders(f"127.0.0.1:{two_simulated.rpc_port}", agent):
        assert _refusal(address, token, ask) is REFUSED
    assert [node["state"] for node in two_simulated.admin("nodes")] == ["ready"]


@pytest.mark.parametrize("name", [CALLERS_TOKEN, REPLICA_TOKEN])
def test_nothing_that_a_replica_holds_opens_another(captives: list[Captive], name: str) -> None:
    one, other = captives
    assert _refusal(other.address, one.environment[name], _health) is REFUSED


def test_a_replica_is_opened_by_its_callers_token_and_not_by_the_clusters(
    captives: list[Captive], cluster_token: str
) -> None:
    one = captives[0]
    assert _refusal(one.address, one.environment[CALLERS_TOKEN], _health) is None
    for token in (cluster_token, one.environment[REPLICA_TOKEN]):
        assert _refusal(one.address, token, _health) is REFUSED


def test_a_replica_speaks_for_itself_alone(captives: list[Captive], agent: str) -> None:
    one, other = captives

    def announce(who: Captive) -> Callable[[Any, Any], None]:
        hello = nodes_pb2.RegisterReplicaRequest(
            replica_id=who.id, address=who.address, pid=who.process.pid
        )
        return lambda channel, proof: _node_agent(channel).RegisterReplica(hello, **proof)

    own = one.environment[REPLICA_TOKEN]
    assert _refusal(agent, own, announce(other)) is FORBIDDEN
    assert _refusal(agent, own, announce(one)) is None
    assert _refusal(agent, one.environment[CALLERS_TOKEN], announce(one)) is REFUSED


def _orders(head: str, agent: str) -> Iterator[tuple[str, Callable[[Any, Any], object]]]:
    """What none but the cluster's own may ask of a head and of an agent."""
    node = nodes_pb2.NodeInfo(node_id="evil", agent_address="127.0.0.1:1")
    register = nodes_pb2.RegisterNodeRequest(node=node)
    start = nodes_pb2.StartReplicaRequest(spec=nodes_pb2.ReplicaSpec(replica_id="evil"))
    yield head, lambda channel, proof: _nodes(channel).Register(register, **proof)
    yield (
        head,
        lambda channel, proof: next(
            _routes(channel).Watch(routes_pb2.WatchRoutesRequest(), **proof)
        ),
    )
    yield agent, lambda channel, proof: _node_agent(channel).StartReplica(start, **proof)
    yield (
        agent,
        lambda channel, proof: _node_agent(channel).StopReplica(
            nodes_pb2.StopReplicaRequest(replica_id="evil"), **proof
        ),
    )
    yield (
        agent,
        lambda channel, proof: _node_agent(channel).ListReplicas(
            nodes_pb2.ListReplicasRequest(), **proof
        ),
    )


def _nodes(channel: grpc.Channel) -> Any:
    return nodes_pb2_grpc.NodesStub(channel)  # type: ignore[no-untyped-call]


def _routes(channel: grpc.Channel) -> Any:
    return routes_pb2_grpc.RoutesStub(channel)  # type: ignore[no-untyped-call]


def _node_agent(channel: grpc.Channel) -> Any:
    return nodes_pb2_grpc.NodeAgentStub(channel)  # type: ignore[no-untyped-call]


def _health(channel: grpc.Channel, proof: Any) -> None:
    stub = inference_pb2_grpc.InferenceStub(channel)  # type: ignore[no-untyped-call]
    stub.Health(inference_pb2.HealthRequest(), **proof)


def _refusal(address: str, token: str, ask: Callable[[Any, Any], object]) -> grpc.StatusCode | None:
    """What a call that shows this token is refused with; None: it is not."""
    proof = {"metadata": (("authorization", f"Bearer {token}"),), "timeout": 10}
    with grpc.insecure_channel(address) as channel:
        try:
            ask(channel, proof)
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
    return None
