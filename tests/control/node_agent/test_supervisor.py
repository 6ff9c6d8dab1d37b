"""What a node agent does for its replicas: a real agent process, fake replica processes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import grpc.aio
import pytest

from penstock.v1 import nodes_pb2
from tests.control.node_agent.harness import (
    DRAINING,
    FAILED,
    READY,
    FakeHead,
    Node,
    running,
    until,
)

pytestmark = pytest.mark.processes


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


async def test_a_replica_of_another_cluster_token_lives_on_and_takes_no_new_requests(
    node: Node,
) -> None:
    exchanged = node.data_dir / "exchanged"
    await node.start_replica("r-1", f"refuses_while={exchanged}")
    first = await node.ready("r-1")
    exchanged.touch()
    status = await node.becomes("r-1", lambda it: it.phase == DRAINING)
    assert "another cluster token" in status.last_error
    said = len(node.head.heartbeats)
    await until(lambda: len(node.head.heartbeats) > said + 20)  # twice as long as hangs last
    assert running(first.pid)
    assert node.head.last()["r-1"].restarts == 0


async def test_a_replica_of_another_cluster_token_gets_its_drain_after_a_signal(
    node: Node, head: FakeHead
) -> None:
    exchanged = node.data_dir / "exchanged"
    exchanged_args = (f"refuses_while={exchanged}", "lingers_ms=2000")
    await node.start_replica("r-1", *exchanged_args)
    first = await node.ready("r-1")
    exchanged.touch()
    await node.stop_replica("r-1", drain_ms=20_000)
    await until(lambda: "r-1" not in head.last())
    assert "ended" in Path(first.log_path).read_text()


async def test_a_replica_that_cannot_load_fails_with_its_own_words(node: Node) -> None:
    await node.start_replica("r-1", "exit_code=72")
    status = await node.becomes("r-1", lambda it: it.phase == FAILED)
    assert status.last_error == "the fake exits with 72"
    assert status.exit_code == 72
    assert status.restarts == 0
    assert "the fake exits" in Path(status.log_path).read_text()


async def test_a_replica_that_finds_no_memory_fails_before_it_is_started(node: Node) -> None:
    settings = {"engine": "vllm", "model": "penstock-mini"}
    await node.start_replica("r-1", "cpu_kvcache_gib=900000", **settings)
    status = await node.becomes("r-1", lambda it: it.phase == FAILED)
    assert "KV cache 900000.00" in status.last_error
    assert "take cpu_kvcache_gib=" in status.last_error
    assert (status.exit_code, status.pid, status.restarts) == (72, 0, 0)
    await node.start_replica("r-2", **settings)
    await node.ready("r-2")


async def test_an_agent_says_what_a_replica_would_take(node: Node) -> None:
    spec = nodes_pb2.ReplicaSpec(engine="vllm", model="penstock-mini")
    fit = await node.call("Fit", nodes_pb2.FitRequest(spec=spec))
    assert fit.verdict == nodes_pb2.FIT_VERDICT_FITS
    assert sum(line.bytes for line in fit.lines) == fit.needed_bytes <= fit.free_bytes
    spec.model = "someone/model"
    fit = await node.call("Fit", nodes_pb2.FitRequest(spec=spec))
    assert fit.verdict == nodes_pb2.FIT_VERDICT_UNSPECIFIED
    assert "is not on this machine yet" in fit.reason


async def test_an_agent_tells_what_memory_a_replica_takes(node: Node, head: FakeHead) -> None:
    await node.start_replica("r-1")
    await node.ready("r-1")
    await until(lambda: bool(head.heartbeats[-1].resources.replicas))
    told = head.heartbeats[-1].resources.replicas[0]
    assert told.replica_id == "r-1"
    assert 1 << 20 < told.memory_bytes < 1 << 30


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
    node.signal(signal.SIGINT)
    assert await node.ended() == 0
    await head.stop()


async def test_what_a_replica_said_before_it_was_killed_stands_beside_the_limit(
    node: Node,
) -> None:
    said = '{"level": "error", "message": "the device is lost"}'
    await node.start_replica("r-1", f"says={said}", "load_ms=60000", start_limit_ms=3000)
    status = await node.becomes("r-1", lambda it: "said last" in it.last_error)
    assert status.last_error == (
        "did not become ready within 3 s; it said last: the device is lost"
    )


async def test_a_loading_replica_is_not_restarted_by_pings(node: Node) -> None:
    await node.start_replica("r-1", "load_ms=2500")  # longer than a ready one may be silent
    status = await node.ready("r-1")
    assert status.restarts == 0


async def test_a_start_limit_of_its_own_goes_before_that_of_the_node(node: Node) -> None:
    await node.start_replica("r-1", "load_ms=60000", start_limit_ms=1000)
    status = await node.becomes("r-1", lambda it: it.restarts >= 1)
    assert status.last_error == "did not become ready within 1 s"


async def test_what_a_replica_was_made_from_is_told_with_its_status(node: Node) -> None:
    made_from = {"deployment_uid": "u1", "template_digest": "d1", "devices": ["GPU-1"]}
    await node.start_replica("r-1", **made_from)
    status = await node.ready("r-1")
    assert (status.deployment_uid, status.template_digest) == ("u1", "d1")
    assert status.devices == ["GPU-1"]
    assert status.ready_at_ms >= status.started_at_ms > 0
    environment = Path(f"/proc/{status.pid}/environ").read_text().split("\0")
    assert "CUDA_VISIBLE_DEVICES=GPU-1" in environment


@pytest.mark.parametrize("other", [{"deployment_uid": "u2"}, {"template_digest": "d2"}])
async def test_a_replica_is_never_told_of_as_one_made_from_something_else(
    node: Node, other: dict[str, str]
) -> None:
    made_from = {"deployment_uid": "u1", "template_digest": "d1"}
    await node.start_replica("r-1", **made_from)
    first = await node.ready("r-1")
    with pytest.raises(grpc.aio.AioRpcError, match="stop it first") as refused:
        await node.start_replica("r-1", **{**made_from, **other})
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert (await node.start_replica("r-1", **made_from)).pid == first.pid
