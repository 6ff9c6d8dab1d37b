"""The node agent of a replica process: hears its registrations, hands out contents by digest."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc

from penstock.v1 import nodes_pb2, nodes_pb2_grpc


class ReplicaAgent(nodes_pb2_grpc.NodeAgentServicer):
    """Knows the `contents` that a test gives it; while `open` is not set, all asking waits."""

    def __init__(self) -> None:
        self.heard: queue.SimpleQueue[nodes_pb2.RegisterReplicaRequest] = queue.SimpleQueue()
        self.shown: list[str] = []  # by who registered
        self.contents: dict[str, Path] = {}
        self.digests: dict[str, str] = {}  # by name
        self.asked: Counter[str] = Counter()
        self.open = threading.Event()
        self.open.set()
        self._server = grpc.server(futures.ThreadPoolExecutor(16))
        nodes_pb2_grpc.add_NodeAgentServicer_to_server(self, self._server)  # type: ignore[no-untyped-call]
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def stop(self) -> None:
        """The agent is gone."""
        self.open.set()
        self._server.stop(None).wait()

    def RegisterReplica(
        self, request: nodes_pb2.RegisterReplicaRequest, context: Any
    ) -> nodes_pb2.RegisterReplicaReply:
        self.shown += [v for k, v in context.invocation_metadata() if k == "authorization"]
        self.heard.put(request)
        return nodes_pb2.RegisterReplicaReply()

    def AdapterContent(
        self, request: nodes_pb2.AdapterContentRequest, context: Any
    ) -> nodes_pb2.AdapterContentReply:
        self.asked[request.digest] += 1
        self.open.wait(30)
        directory = self.contents.get(request.digest)
        if directory is None:
            context.abort(grpc.StatusCode.NOT_FOUND, "nobody registered it")
        return nodes_pb2.AdapterContentReply(directory=str(directory))

    def offer(self, name: str, digest: str, directory: Path) -> None:
        """Has the content of an adapter from now on."""
        self.digests[name] = digest
        self.contents[digest] = directory

    def heard_when(self, wanted: Any, within: float = 20) -> nodes_pb2.RegisterReplicaRequest:
        """The first registration, of those not yet looked at, that satisfies `wanted`."""
        while True:
            said = self.heard.get(timeout=within)
            if wanted(said):
                return said


@contextlib.contextmanager
def replica_agent() -> Iterator[ReplicaAgent]:
    """An agent that listens."""
    agent = ReplicaAgent()
    try:
        yield agent
    finally:
        agent.stop()


__all__ = ["ReplicaAgent", "replica_agent"]
