"""A node agent as a real process, and a head made of two methods, for tests."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc.aio
import psutil

from penstock.v1 import common_pb2, inference_pb2, nodes_pb2, nodes_pb2_grpc
from tests.fakes import waiting

READY = nodes_pb2.REPLICA_PHASE_READY
STARTING = nodes_pb2.REPLICA_PHASE_STARTING
DRAINING = nodes_pb2.REPLICA_PHASE_DRAINING
BACKOFF = nodes_pb2.REPLICA_PHASE_BACKOFF
FAILED = nodes_pb2.REPLICA_PHASE_FAILED
ASLEEP = nodes_pb2.REPLICA_PHASE_ASLEEP
Status = nodes_pb2.ReplicaStatus


@dataclass
class FakeHead(nodes_pb2_grpc.NodesServicer):
    """Remembers what nodes say."""

    port: int = 0
    registrations: list[nodes_pb2.RegisterNodeRequest] = field(default_factory=list)
    heartbeats: list[nodes_pb2.HeartbeatRequest] = field(default_factory=list)
    forgetful: bool = False
    slow_at_goodbye: bool = False  # it answers no farewell in time
    stamp: common_pb2.ClusterStamp = field(default_factory=common_pb2.ClusterStamp)
    adapters: dict[str, Path] = field(default_factory=dict)  # by digest, what can be fetched
    fetched: list[str] = field(default_factory=list)
    holds_back: bool = False  # it sends the first bytes of an adapter, and nothing after them
    programs: list[nodes_pb2.RouterProgram] = field(default_factory=list)  # that are to run
    texts: dict[str, bytes] = field(default_factory=dict)  # of programs, by digest
    _server: grpc.aio.Server | None = None

    async def Register(
        self, request: nodes_pb2.RegisterNodeRequest, context: Any
    ) -> nodes_pb2.RegisterNodeReply:
        self.registrations.append(request)
        return nodes_pb2.RegisterNodeReply(heartbeat_ms=100, stamp=self.stamp)

    async def Heartbeat(
        self, request: nodes_pb2.HeartbeatRequest, context: Any
    ) -> nodes_pb2.HeartbeatReply:
        self.heartbeats.append(request)
        if self.slow_at_goodbye and request.intent != nodes_pb2.NODE_INTENT_SERVING:
            await asyncio.Event().wait()
        forgot, self.forgetful = self.forgetful, False
        return nodes_pb2.HeartbeatReply(unknown=forgot, stamp=self.stamp, programs=self.programs)

    async def FetchProgram(
        self, request: nodes_pb2.FetchProgramRequest, context: Any
    ) -> nodes_pb2.FetchProgramReply:
        if request.digest not in self.texts:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no deployment has it")
        return nodes_pb2.FetchProgramReply(text=self.texts[request.digest])

    async def FetchAdapter(
        self, request: nodes_pb2.FetchAdapterRequest, context: Any
    ) -> AsyncIterator[nodes_pb2.AdapterPiece]:
        self.fetched.append(request.digest)
        directory = self.adapters.get(request.digest)
        if directory is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "nobody registered it")
            raise AssertionError("abort raises")
        for name in ("adapter_config.json", "adapter_model.safetensors"):
            data = (directory / name).read_bytes()
            yield nodes_pb2.AdapterPiece(file=name, data=data[:100])
            if self.holds_back:
                await asyncio.Event().wait()
            yield nodes_pb2.AdapterPiece(data=data[100:])

    async def start(self) -> None:
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        nodes_pb2_grpc.add_NodesServicer_to_server(self, self._server)  # type: ignore[no-untyped-call]
        self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        await self._server.start()

    async def stop(self) -> None:
        assert self._server is not None
        await self._server.stop(grace=None)

    def last(self) -> dict[str, Status]:
        """The replicas of the latest heartbeat."""
        return (
            {each.replica_id: each for each in self.heartbeats[-1].replicas}
            if (self.heartbeats)
            else {}
        )


@dataclass
class Node:
    """An agent process, and calls to it."""

    data_dir: Path
    head: FakeHead
    process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> None:
        argv = [sys.executable, "-m", "tests.fakes.node_with_fake_replicas"]
        with (self.data_dir / "agent.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*argv, str(self.data_dir), f"127.0.0.1:{self.head.port}", *more],
                start_new_session=True,
                stderr=log,
            )

    def log(self) -> str:
        return (self.data_dir / "agent.log").read_text()

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def ended(self, seconds: float = 10.0) -> int:
        process = self.process
        assert process is not None
        await until(lambda: process.poll() is not None, seconds)
        return process.returncode

    async def call(self, method: str, request: Any) -> Any:
        await until(lambda: bool(self.head.registrations))
        address = self.head.registrations[-1].node.agent_address
        async with grpc.aio.insecure_channel(address) as channel:
            stub = nodes_pb2_grpc.NodeAgentStub(channel)  # type: ignore[no-untyped-call]
            return await getattr(stub, method)(request, timeout=5)

    async def start_replica(self, replica_id: str, *engine_args: str, **facts: Any) -> Status:
        spec = nodes_pb2.ReplicaSpec(
            replica_id=replica_id,
            deployment="mini",
            engine_args=engine_args,
            **{"engine": "simulated", "model": "m", **facts},
        )
        request = nodes_pb2.StartReplicaRequest(spec=spec, stamp=self.head.stamp)
        status: Status = await self.call("StartReplica", request)
        return status

    async def stop_replica(
        self, replica_id: str, drain_ms: int = 200, *, sleep: bool = False
    ) -> None:
        request = nodes_pb2.StopReplicaRequest(
            replica_id=replica_id, drain_ms=drain_ms, stamp=self.head.stamp, sleep=sleep
        )
        await self.call("StopReplica", request)

    async def keep_adapters(
        self, replica_id: str, *adapters: inference_pb2.Adapter, dropped: Sequence[str] = ()
    ) -> None:
        keep = inference_pb2.KeepAdapters(adapters=adapters, dropped=dropped)
        request = nodes_pb2.KeepAdaptersRequest(
            replica_id=replica_id, keep=keep, stamp=self.head.stamp
        )
        await self.call("KeepAdapters", request)

    async def becomes(
        self, replica_id: str, condition: Callable[[Status], bool], seconds: float = 60.0
    ) -> Status:
        def good() -> bool:
            status = self.head.last().get(replica_id)
            return status is not None and condition(status)

        await until(good, seconds)
        return self.head.last()[replica_id]

    async def ready(self, replica_id: str) -> Status:
        return await self.becomes(replica_id, lambda it: it.phase == READY)


async def until(condition: Callable[[], bool], seconds: float = 15.0) -> None:
    await waiting.until(condition, "what the test waits for", seconds=seconds)


def running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def of_this_test(data_dir: Path) -> list[int]:
    """Replica processes that log below the data directory, running or not."""
    found = []
    for process in psutil.process_iter():
        try:
            target = os.readlink(f"/proc/{process.pid}/fd/1")
        except OSError:
            continue
        if target.startswith(f"{data_dir}/logs/") and running(process.pid):
            found.append(process.pid)
    return found
