"""A replica that is told to drain before it is ready, as a process."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest

from penstock.v1 import inference_pb2, nodes_pb2, nodes_pb2_grpc
from tests.fakes.ports import free_address
from tests.fakes.replica_process import ReplicaProcess, chat_request, inference_stub

pytestmark = pytest.mark.processes


class _SlowAgent(nodes_pb2_grpc.NodeAgentServicer):
    """Takes a replica only once it may."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.may = threading.Event()
        self.hellos = 0

    def RegisterReplica(
        self, request: nodes_pb2.RegisterReplicaRequest, context: Any
    ) -> nodes_pb2.RegisterReplicaReply:
        self.hellos += 1
        self.asked.set()
        self.may.wait(20)
        return nodes_pb2.RegisterReplicaReply()


@contextlib.contextmanager
def _slow_agent() -> Iterator[tuple[_SlowAgent, str]]:
    service = _SlowAgent()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    nodes_pb2_grpc.add_NodeAgentServicer_to_server(service, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield service, f"127.0.0.1:{port}"
    finally:
        service.may.set()
        server.stop(None).wait()


def _await_line(replica: ReplicaProcess, words: str) -> None:
    deadline = time.monotonic() + 20
    while words not in replica.log():
        assert time.monotonic() < deadline, replica.log()
        time.sleep(0.01)


def test_a_drain_before_it_is_ready_is_answered_and_not_undone_by_the_end_of_loading(
    tmp_path: Path,
) -> None:
    address = free_address()
    arguments = ("--engine", "simulated", "--model", "m", "--listen", address)
    with _slow_agent() as (agent, agent_address):
        replica = ReplicaProcess(tmp_path / "log", *arguments, "--agent", agent_address)
        try:
            assert agent.asked.wait(20)
            with inference_stub(address) as stub:
                request = inference_pb2.DrainRequest(deadline_ms=1000)
                assert stub.Drain(request, timeout=10).left == 0
                agent.may.set()
                _await_line(replica, "loaded, and not ready")
                health = inference_pb2.HealthRequest(depth=inference_pb2.HEALTH_DEPTH_READY)
                reply = stub.Health(health, timeout=10)
                assert (reply.ok, reply.state) == (False, inference_pb2.REPLICA_STATE_DRAINING)
                (event,) = stub.Call(chat_request("Hello"), timeout=10)
                assert event.failed.error.code == "draining"
            assert agent.hellos == 1, "the agent is not told that it is ready"
        finally:
            replica.close()
        assert replica.process.poll() == 0
