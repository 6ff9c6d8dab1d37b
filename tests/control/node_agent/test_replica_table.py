"""Agents that are killed and succeeded, stopped, or doubled: who keeps what, and what is left."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import grpc.aio
import psutil
import pytest

from penstock.v1 import inference_pb2, inference_pb2_grpc, nodes_pb2
from tests.control.node_agent.harness import (
    READY,
    STARTING,
    FakeHead,
    Node,
    running,
    until,
)

pytestmark = pytest.mark.processes


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


async def test_a_providers_replica_that_may_send_elsewhere_is_renewed_by_the_next_agent(
    node: Node, head: FakeHead
) -> None:
    node.signal(signal.SIGKILL)
    await node.ended()
    head.registrations.clear()
    node.start("30", "", "old.example")
    await node.start_replica("r-1", engine="openai")
    await node.start_replica("r-2")
    before, engine = await node.ready("r-1"), await node.ready("r-2")
    node.signal(signal.SIGKILL)
    await node.ended()
    node.start("30", "", "new.example")
    after = await node.becomes("r-1", lambda it: it.phase == READY and it.pid != before.pid)
    assert "new.example" in psutil.Process(after.pid).cmdline()
    assert not running(before.pid)
    assert "--provider-hosts" in after.last_error
    assert after.restarts == 0, "it did not fail"
    assert (await node.ready("r-2")).pid == engine.pid, "it has no keys to send"
    node.signal(signal.SIGKILL)
    await node.ended()
    registered = len(head.registrations)
    node.start("30", "", "new.example")
    await until(lambda: len(head.registrations) > registered)
    assert {each.pid for each in head.registrations[-1].replicas} == {after.pid, engine.pid}


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
    node.signal(signal.SIGINT)
    await node.becomes("r-1", lambda it: it.phase == nodes_pb2.REPLICA_PHASE_DRAINING)
    node.signal(signal.SIGKILL)
    await node.ended()
    assert running(before.pid)
    node.start()
    await until(lambda: not running(before.pid))
    await until(lambda: head.last() == {})


async def test_running_calls_keep_the_time_they_were_given_when_the_agent_is_succeeded(
    node: Node, head: FakeHead, tmp_path: Path
) -> None:
    deadlines = tmp_path / "deadlines"
    await node.start_replica("r-1", f"drains={deadlines}")
    await node.ready("r-1")
    await node.stop_replica("r-1", drain_ms=60_000)
    await until(deadlines.exists)
    node.signal(signal.SIGTERM)
    assert await node.ended(8.0) == 0
    node.start()
    await until(lambda: len(deadlines.read_text().splitlines()) == 2)
    first, second = map(int, deadlines.read_text().splitlines())
    assert first == 60_000
    assert 30_000 < second <= 60_000


async def test_a_replica_that_drains_though_no_agent_was_asked_is_not_stopped_by_the_next(
    node: Node, head: FakeHead
) -> None:
    await node.start_replica("r-1")
    before = await node.ready("r-1")
    async with grpc.aio.insecure_channel(before.address) as channel:
        stub = inference_pb2_grpc.InferenceStub(channel)  # type: ignore[no-untyped-call]
        await stub.Drain(inference_pb2.DrainRequest(), timeout=5)
    await node.becomes("r-1", lambda it: it.phase == nodes_pb2.REPLICA_PHASE_DRAINING)
    node.signal(signal.SIGKILL)
    await node.ended()
    node.start()
    await until(lambda: len(head.registrations) == 2)
    beats = len(head.heartbeats)
    await until(lambda: len(head.heartbeats) > beats + 10)
    assert running(before.pid)
    os.kill(before.pid, signal.SIGKILL)
    after = await node.ready("r-1")
    assert after.pid != before.pid


async def test_a_replica_that_is_told_to_drain_while_it_loads_is_not_shown_as_loading(
    node: Node,
) -> None:
    await node.start_replica("r-1", "load_ms=60000")
    loading = await node.becomes("r-1", lambda it: it.address != "")
    async with grpc.aio.insecure_channel(loading.address) as channel:
        stub = inference_pb2_grpc.InferenceStub(channel)  # type: ignore[no-untyped-call]
        await stub.Drain(inference_pb2.DrainRequest(), timeout=5)
    await node.becomes("r-1", lambda it: it.phase == nodes_pb2.REPLICA_PHASE_DRAINING, 10)


async def test_a_replica_that_nobody_can_name_is_killed(node: Node) -> None:
    await node.start_replica("r-1")
    before = await node.ready("r-1")
    node.signal(signal.SIGKILL)
    await node.ended()
    (node.data_dir / "replicas" / "r-1.json").write_text("scrambled")
    node.start()
    await until(lambda: not running(before.pid))


async def test_sigterm_hands_the_replicas_to_the_next_agent(node: Node, head: FakeHead) -> None:
    for replica_id in ("r-1", "r-2"):
        await node.start_replica(replica_id)
    pids = {(await node.ready(replica_id)).pid for replica_id in ("r-1", "r-2")}
    node.signal(signal.SIGTERM)
    assert await node.ended(8.0) == 0
    assert all(running(pid) for pid in pids)
    goodbye = head.heartbeats[-1]
    assert goodbye.intent == nodes_pb2.NODE_INTENT_HANDING_OVER
    assert {each.phase for each in goodbye.replicas} == {READY}
    node.start()
    await until(lambda: len(head.registrations) == 2)
    adopted = head.registrations[1].replicas
    assert {each.pid for each in adopted} == pids
    assert {(each.phase, each.restarts) for each in adopted} == {(READY, 0)}


async def test_ctrl_c_stops_all_replicas_and_exits_with_zero(node: Node, head: FakeHead) -> None:
    for replica_id in ("r-1", "r-2"):
        await node.start_replica(replica_id, "deaf=1")
    pids = [(await node.ready(replica_id)).pid for replica_id in ("r-1", "r-2")]
    node.signal(signal.SIGINT)
    assert await node.ended(8.0) == 0
    assert not any(running(pid) for pid in pids)
    assert head.last() == {}
    assert head.heartbeats[-1].intent == nodes_pb2.NODE_INTENT_LEAVING


async def test_ctrl_c_stops_all_replicas_of_an_agent_that_hands_them_over_just_then(
    node: Node, head: FakeHead
) -> None:
    await node.start_replica("r-1")
    pid = (await node.ready("r-1")).pid
    head.slow_at_goodbye = True
    node.signal(signal.SIGTERM)
    await until(lambda: head.heartbeats[-1].intent == nodes_pb2.NODE_INTENT_HANDING_OVER)
    node.signal(signal.SIGINT)
    assert await node.ended(20.0) == 0
    assert not running(pid)


async def test_a_stopping_agent_starts_nothing_new(node: Node) -> None:
    await node.start_replica("r-1", "deaf=1")
    first = await node.ready("r-1")
    node.signal(signal.SIGINT)
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
    assert f"pid {node.process.pid}" in node.log()


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
