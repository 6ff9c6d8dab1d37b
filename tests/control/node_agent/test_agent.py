"""A real node agent process with fake replica processes, under a head made of two methods."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc.aio
import psutil
import pytest

from penstock.v1 import nodes_pb2, nodes_pb2_grpc

pytestmark = pytest.mark.processes

READY = nodes_pb2.REPLICA_PHASE_READY
STARTING = nodes_pb2.REPLICA_PHASE_STARTING
BACKOFF = nodes_pb2.REPLICA_PHASE_BACKOFF
FAILED = nodes_pb2.REPLICA_PHASE_FAILED
Status = nodes_pb2.ReplicaStatus


@dataclass
class FakeHead(nodes_pb2_grpc.NodesServicer):
    """Remembers what nodes say."""

    port: int = 0
    registrations: list[nodes_pb2.RegisterNodeRequest] = field(default_factory=list)
    heartbeats: list[nodes_pb2.HeartbeatRequest] = field(default_factory=list)
    forgetful: bool = False
    _server: grpc.aio.Server | None = None

    async def Register(
        self, request: nodes_pb2.RegisterNodeRequest, context: Any
    ) -> nodes_pb2.RegisterNodeReply:
        self.registrations.append(request)
        return nodes_pb2.RegisterNodeReply(heartbeat_ms=100)

    async def Heartbeat(
        self, request: nodes_pb2.HeartbeatRequest, context: Any
    ) -> nodes_pb2.HeartbeatReply:
        self.heartbeats.append(request)
        forgot, self.forgetful = self.forgetful, False
        return nodes_pb2.HeartbeatReply(unknown=forgot)

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

    async def start_replica(self, replica_id: str, *engine_args: str) -> None:
        spec = nodes_pb2.ReplicaSpec(
            replica_id=replica_id,
            deployment="mini",
            engine="simulated",
            model="m",
            engine_args=engine_args,
        )
        await self.call("StartReplica", nodes_pb2.StartReplicaRequest(spec=spec))

    async def stop_replica(self, replica_id: str) -> None:
        request = nodes_pb2.StopReplicaRequest(replica_id=replica_id, drain_ms=200)
        await self.call("StopReplica", request)

    async def becomes(
        self, replica_id: str, condition: Callable[[Status], bool], seconds: float = 15.0
    ) -> Status:
        def good() -> bool:
            status = self.head.last().get(replica_id)
            return status is not None and condition(status)

        await until(good, seconds)
        return self.head.last()[replica_id]

    async def ready(self, replica_id: str) -> Status:
        return await self.becomes(replica_id, lambda it: it.phase == READY)


async def until(condition: Callable[[], bool], seconds: float = 15.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


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


@pytest.fixture
async def head() -> AsyncIterator[FakeHead]:
    head = FakeHead()
    await head.start()
    yield head
    await head.stop()


@pytest.fixture
async def node(tmp_path: Path, head: FakeHead) -> AsyncIterator[Node]:
    node = Node(tmp_path, head)
    node.start()
    yield node
    if node.process is not None and node.process.poll() is None:
        node.process.kill()
        node.process.wait()
    for pid in of_this_test(tmp_path):
        os.kill(pid, signal.SIGKILL)


async def test_the_agent_registers_and_tells_what_the_machine_has(
    node: Node, head: FakeHead
) -> None:
    await until(lambda: bool(head.registrations))
    info = head.registrations[0].node
    assert info.node_id == "node-1"
    assert node.process is not None
    assert info.pid == node.process.pid
    assert info.resources.memory_bytes == psutil.virtual_memory().total
    assert info.resources.cpus == psutil.cpu_count()


async def test_a_replica_becomes_ready_and_tells_its_facts(node: Node) -> None:
    await node.start_replica("r-1", "load_ms=100")
    status = await node.becomes("r-1", lambda it: it.phase == READY and it.capacity > 0)
    assert (status.capacity, status.max_model_len) == (8, 2048)
    assert status.address.startswith("127.0.0.1:")
    assert running(status.pid)


async def test_starting_a_replica_twice_starts_it_once(node: Node) -> None:
    await node.start_replica("r-1")
    first = await node.ready("r-1")
    await node.start_replica("r-1")
    listing = await node.call("ListReplicas", nodes_pb2.ListReplicasRequest())
    assert [each.pid for each in listing.replicas] == [first.pid]


async def test_a_stopped_replica_is_gone_with_its_process_and_its_file(
    node: Node, head: FakeHead
) -> None:
    await node.start_replica("r-1")
    status = await node.ready("r-1")
    await node.stop_replica("r-1")
    await until(lambda: "r-1" not in head.last())
    assert not running(status.pid)
    assert list((node.data_dir / "replicas").iterdir()) == []


async def test_stopping_what_is_not_there_succeeds(node: Node) -> None:
    await node.stop_replica("nobody")


async def test_a_replica_that_ignores_sigterm_is_killed(node: Node, head: FakeHead) -> None:
    await node.start_replica("r-1", "deaf=1")
    status = await node.ready("r-1")
    await node.stop_replica("r-1")
    await until(lambda: "r-1" not in head.last())
    assert not running(status.pid)


async def test_a_killed_replica_comes_back_under_its_id_at_another_address(node: Node) -> None:
    await node.start_replica("r-1")
    first = await node.ready("r-1")
    os.kill(first.pid, signal.SIGKILL)
    second = await node.becomes("r-1", lambda it: it.phase == READY and it.restarts == 1)
    assert second.pid != first.pid
    assert second.exit_code == -signal.SIGKILL


async def test_what_a_killed_replica_had_started_dies_with_it(node: Node) -> None:
    engine_pid = node.data_dir / "engine.pid"
    await node.start_replica("r-1", f"engine_pid={engine_pid}")
    first = await node.ready("r-1")
    engine = int(engine_pid.read_text())
    assert running(engine)
    os.kill(first.pid, signal.SIGKILL)
    await until(lambda: not running(engine))


async def test_a_hung_replica_is_replaced(node: Node) -> None:
    stone = node.data_dir / "hang"
    await node.start_replica("r-1", f"silent_while={stone}")
    first = await node.ready("r-1")
    stone.touch()
    await until(lambda: not running(first.pid))
    stone.unlink()
    second = await node.becomes("r-1", lambda it: it.phase == READY and it.restarts >= 1)
    assert second.pid != first.pid


async def test_a_stopped_process_counts_as_hung(node: Node) -> None:
    await node.start_replica("r-1")
    first = await node.ready("r-1")
    os.kill(first.pid, signal.SIGSTOP)
    status = await node.becomes("r-1", lambda it: "hung for" in it.last_error)
    assert "no answer to Health" in status.last_error
    assert not running(first.pid)


async def test_a_replica_that_cannot_load_fails_with_its_own_words(node: Node) -> None:
    await node.start_replica("r-1", "exit_code=72")
    status = await node.becomes("r-1", lambda it: it.phase == FAILED)
    assert status.last_error == "the fake exits with 72"
    assert status.exit_code == 72
    assert status.restarts == 0
    assert "the fake exits" in Path(status.log_path).read_text()


async def test_a_failed_replica_can_be_stopped(node: Node, head: FakeHead) -> None:
    await node.start_replica("r-1", "exit_code=72")
    await node.becomes("r-1", lambda it: it.phase == FAILED)
    await node.stop_replica("r-1")
    await until(lambda: "r-1" not in head.last())


async def test_quick_deaths_in_a_row_are_called_a_crash_loop(node: Node) -> None:
    await node.start_replica("r-1", "exit_code=70")
    status = await node.becomes("r-1", lambda it: "crash loop" in it.last_error)
    assert "the fake exits with 70" in status.last_error
    assert status.restarts >= 3


async def test_a_replica_that_never_gets_ready_is_started_anew(tmp_path: Path) -> None:
    head = FakeHead()
    await head.start()
    node = Node(tmp_path, head)
    node.start("1.0")
    await node.start_replica("r-1", "load_ms=60000")
    status = await node.becomes("r-1", lambda it: it.restarts >= 1)
    assert status.last_error == "did not become ready within 1 s"
    node.signal(signal.SIGTERM)
    assert await node.ended() == 0
    await head.stop()


async def test_a_loading_replica_is_not_restarted_by_pings(node: Node) -> None:
    await node.start_replica("r-1", "load_ms=2500")  # longer than a ready one may be silent
    status = await node.ready("r-1")
    assert status.restarts == 0


async def test_everything_runs_on_while_the_head_is_away(node: Node, head: FakeHead) -> None:
    await node.start_replica("r-1")
    before = await node.ready("r-1")
    await head.stop()
    os.kill(before.pid, signal.SIGKILL)
    await until(lambda: len(of_this_test(node.data_dir)) == 1 and not running(before.pid))
    registrations = len(head.registrations)
    await head.start()
    await until(lambda: len(head.registrations) > registrations)
    after = await node.ready("r-1")
    assert after.restarts == 1


async def test_a_head_that_forgot_the_node_hears_it_register_again(
    node: Node, head: FakeHead
) -> None:
    await node.start_replica("r-1")
    await node.ready("r-1")
    head.forgetful = True
    await until(lambda: len(head.registrations) == 2)
    assert [each.replica_id for each in head.registrations[1].replicas] == ["r-1"]


async def test_a_killed_agent_leaves_replicas_that_its_successor_adopts(
    node: Node, head: FakeHead
) -> None:
    await node.start_replica("r-1")
    before = await node.becomes("r-1", lambda it: it.phase == READY and it.capacity > 0)
    node.signal(signal.SIGKILL)
    await node.ended()
    assert running(before.pid)
    node.start()
    await until(lambda: len(head.registrations) == 2)
    adopted = head.registrations[1].replicas[0]
    assert (adopted.pid, adopted.phase, adopted.address) == (before.pid, READY, before.address)
    assert (adopted.restarts, adopted.capacity) == (0, 8)


async def test_an_adopted_replica_is_still_watched(node: Node, head: FakeHead) -> None:
    await node.start_replica("r-1")
    before = await node.ready("r-1")
    node.signal(signal.SIGKILL)
    await node.ended()
    node.start()
    await until(lambda: len(head.registrations) == 2)
    os.kill(before.pid, signal.SIGKILL)
    after = await node.becomes("r-1", lambda it: it.phase == READY and it.pid != before.pid)
    assert after.restarts == 1


async def test_a_replica_that_was_loading_is_adopted_and_becomes_ready(
    node: Node, head: FakeHead
) -> None:
    await node.start_replica("r-1", "load_ms=3000")
    before = await node.becomes("r-1", lambda it: it.phase == STARTING and it.address != "")
    node.signal(signal.SIGKILL)
    await node.ended()
    node.start()
    after = await node.becomes("r-1", lambda it: it.phase == READY and it.capacity > 0)
    assert (after.pid, after.restarts) == (before.pid, 0)


async def test_a_replica_that_died_meanwhile_is_replaced(node: Node) -> None:
    await node.start_replica("r-1")
    before = await node.ready("r-1")
    node.signal(signal.SIGKILL)
    await node.ended()
    os.kill(before.pid, signal.SIGKILL)
    node.start()
    after = await node.becomes("r-1", lambda it: it.phase == READY and it.pid != before.pid)
    assert after.restarts == 1


async def test_a_stop_that_was_cut_short_is_finished_by_the_successor(
    node: Node, head: FakeHead
) -> None:
    await node.start_replica("r-1", "deaf=1")
    before = await node.ready("r-1")
    node.signal(signal.SIGTERM)
    await node.becomes("r-1", lambda it: it.phase == nodes_pb2.REPLICA_PHASE_DRAINING)
    node.signal(signal.SIGKILL)
    await node.ended()
    assert running(before.pid)
    node.start()
    await until(lambda: not running(before.pid))
    await until(lambda: head.last() == {})


async def test_a_replica_that_nobody_can_name_is_killed(node: Node) -> None:
    await node.start_replica("r-1")
    before = await node.ready("r-1")
    node.signal(signal.SIGKILL)
    await node.ended()
    (node.data_dir / "replicas" / "r-1.json").write_text("scrambled")
    node.start()
    await until(lambda: not running(before.pid))


async def test_sigterm_stops_all_replicas_and_exits_with_zero(node: Node) -> None:
    for replica_id in ("r-1", "r-2"):
        await node.start_replica(replica_id, "deaf=1")
    pids = [(await node.ready(replica_id)).pid for replica_id in ("r-1", "r-2")]
    node.signal(signal.SIGTERM)
    assert await node.ended(8.0) == 0
    assert not any(running(pid) for pid in pids)
    assert node.head.last() == {}


async def test_a_stopping_agent_starts_nothing_new(node: Node) -> None:
    await node.start_replica("r-1", "deaf=1")
    first = await node.ready("r-1")
    node.signal(signal.SIGTERM)
    await node.becomes("r-1", lambda it: it.phase == nodes_pb2.REPLICA_PHASE_DRAINING)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await node.start_replica("r-2")
    assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
    assert await node.ended(8.0) == 0
    assert not running(first.pid)


async def test_a_second_agent_on_the_same_data_is_refused(node: Node, head: FakeHead) -> None:
    await until(lambda: bool(head.registrations))
    second = Node(node.data_dir, head)
    second.start()
    assert await second.ended() != 0
    assert node.process is not None
    assert f"pid {node.process.pid}" in (node.data_dir / "agent.log").read_text()


async def test_a_strange_process_cannot_register_as_a_replica(node: Node) -> None:
    await node.start_replica("r-1")
    await node.ready("r-1")
    for replica_id in ("r-1", "stranger"):
        request = nodes_pb2.RegisterReplicaRequest(
            replica_id=replica_id, address="127.0.0.1:1", pid=1
        )
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await node.call("RegisterReplica", request)
        assert refused.value.code() == grpc.StatusCode.NOT_FOUND


async def test_an_id_that_is_no_file_name_is_refused(node: Node) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await node.start_replica("../../etc/passwd")
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
