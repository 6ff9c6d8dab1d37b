"""What replicas are to hold: told by the head once, known to every process that follows."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import grpc.aio
import pytest

from penstock.control.errors import InvalidInput
from penstock.control.node_agent.kept_adapters import check_keep, order_of, remembered
from penstock.control.node_agent.replica_record import ReplicaRecord
from penstock.v1 import common_pb2, inference_pb2, nodes_pb2
from tests.control.node_agent.harness import READY, FakeHead, Node, until

processes = pytest.mark.processes


def adapter(name: str, digit: str = "a", *, pinned: bool = False) -> inference_pb2.Adapter:
    return inference_pb2.Adapter(name=name, digest=digit * 64, pinned=pinned)


def keep(*adapters: inference_pb2.Adapter, dropped: tuple[str, ...] = ()) -> ReplicaRecord:
    """A record that once had json@1, with these instead."""
    spec = nodes_pb2.ReplicaSpec(replica_id="r", adapters=[adapter("json@1")])
    record = ReplicaRecord(spec, dropped_adapters=("old@1",))
    order = inference_pb2.KeepAdapters(adapters=adapters, dropped=dropped)
    changes = remembered(record, order)
    assert [each.name for each in record.spec.adapters] == ["json@1"]
    return ReplicaRecord(**changes)


def test_a_list_takes_the_place_of_the_one_before() -> None:
    record = keep(adapter("pirate@1", pinned=True), adapter("json@2"))
    assert [(a.name, a.pinned) for a in record.spec.adapters] == [
        ("pirate@1", True),
        ("json@2", False),
    ]
    assert record.spec.replica_id == "r"
    assert order_of(record).adapters == record.spec.adapters


def test_what_is_dropped_is_told_until_it_was_heard_unless_it_is_kept_again() -> None:
    assert keep(dropped=("json@1",)).dropped_adapters == ("old@1", "json@1")
    assert keep(adapter("old@1"), dropped=("json@1",)).dropped_adapters == ("json@1",)
    assert order_of(keep(dropped=("old@1",))).dropped == ["old@1"]


@pytest.mark.parametrize(
    "one",
    [
        inference_pb2.Adapter(name="pirate@1"),
        inference_pb2.Adapter(name="pirate@1", digest="sha256:abc"),
        inference_pb2.Adapter(digest="a" * 64),
    ],
)
def test_a_list_that_no_replica_could_be_started_with_is_refused(
    one: inference_pb2.Adapter,
) -> None:
    with pytest.raises(InvalidInput, match="64 hexadecimal digits or where it lies"):
        check_keep(inference_pb2.KeepAdapters(adapters=[adapter("json@1"), one]))


@processes
async def test_a_list_reaches_the_replica_and_what_it_holds_reaches_the_head(
    node: Node, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    await node.start_replica("r-1", f"keeps={kept}", max_adapters=4, max_adapter_rank=16)
    first = await node.ready("r-1")
    await node.becomes("r-1", lambda it: it.adapter_slots == 4)
    assert (list(first.adapters), node.head.last()["r-1"].max_adapter_rank) == ([], 16)
    await node.keep_adapters("r-1", adapter("pirate@1"), adapter("broken@1"), dropped=["old@1"])
    status = await node.becomes("r-1", lambda it: list(it.adapters) == ["pirate@1"])
    assert list(status.adapter_digests) == ["a" * 64]
    assert [(f.name, f.reason) for f in status.failed_adapters] == [("broken@1", "broken")]
    assert kept.read_text().splitlines()[-1].endswith(" without old@1")
    await node.keep_adapters("r-1")
    await node.becomes("r-1", lambda it: not it.adapters)
    assert kept.read_text().splitlines()[-1] == " without "


@processes
async def test_a_restarted_replica_is_started_with_what_it_is_to_hold(
    node: Node, head: FakeHead, tmp_path: Path
) -> None:
    await node.start_replica("r-1", f"keeps={tmp_path / 'kept'}", adapters=[adapter("old@1", "b")])
    first = await node.becomes("r-1", lambda it: list(it.adapters) == ["old@1"])
    await node.keep_adapters("r-1", adapter("pirate@1"), dropped=["old@1"])
    await node.becomes("r-1", lambda it: list(it.adapters) == ["pirate@1"])
    os.kill(first.pid, signal.SIGKILL)
    gone = await node.becomes("r-1", lambda it: it.pid != first.pid)
    assert gone.phase == READY or not gone.adapters
    after = await node.becomes("r-1", lambda it: it.phase == READY and it.pid != first.pid)
    argv = Path(f"/proc/{after.pid}/cmdline").read_text().split("\0")
    assert argv[argv.index("--adapter") + 1] == f"pirate@1=sha256:{'a' * 64}"
    assert argv.count("--adapter") == 1


@processes
async def test_a_list_outlives_the_agent_that_took_it(
    node: Node, head: FakeHead, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    deaf = kept.with_suffix(".deaf")
    deaf.touch()
    await node.start_replica("r-1", f"keeps={kept}")
    await node.ready("r-1")
    await node.keep_adapters("r-1", adapter("pirate@1"), dropped=["old@1"])
    await until(lambda: "is told again what to hold" in node.log())
    node.signal(signal.SIGKILL)
    await node.ended()
    deaf.unlink()
    node.start()
    await node.becomes("r-1", lambda it: list(it.adapters) == ["pirate@1"])
    assert kept.read_text() == f"pirate@1={'a' * 64} without old@1\n"


@processes
async def test_what_an_adopted_replica_told_before_is_known_to_the_next_agent(
    node: Node, head: FakeHead, tmp_path: Path
) -> None:
    await node.start_replica("r-1", f"keeps={tmp_path / 'kept'}", max_adapters=2)
    await node.ready("r-1")
    await node.keep_adapters("r-1", adapter("pirate@1"))
    await node.becomes("r-1", lambda it: list(it.adapters) == ["pirate@1"])
    node.signal(signal.SIGTERM)
    await node.ended()
    node.start()
    await until(lambda: len(head.registrations) == 2)
    (status,) = head.registrations[1].replicas
    assert (list(status.adapters), status.adapter_slots) == (["pirate@1"], 2)


@processes
async def test_a_list_for_nobody_or_of_another_head_is_refused(node: Node, head: FakeHead) -> None:
    head.stamp = common_pb2.ClusterStamp(cluster_id="c", epoch=2, revision=5)
    await node.start_replica("r-1")
    await node.ready("r-1")
    with pytest.raises(grpc.aio.AioRpcError) as unknown:
        await node.keep_adapters("r-2", adapter("pirate@1"))
    assert unknown.value.code() is grpc.StatusCode.NOT_FOUND
    with pytest.raises(grpc.aio.AioRpcError) as unfit:
        await node.keep_adapters("r-1", inference_pb2.Adapter(name="pirate@1"))
    assert unfit.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    head.stamp = common_pb2.ClusterStamp(cluster_id="c", epoch=1, revision=9)
    with pytest.raises(grpc.aio.AioRpcError) as foreign:
        await node.keep_adapters("r-1", adapter("pirate@1"))
    assert foreign.value.code() is grpc.StatusCode.FAILED_PRECONDITION


@processes
async def test_a_replica_that_knows_no_lists_is_not_asked_for_ever(node: Node) -> None:
    await node.start_replica("r-1")
    await node.ready("r-1")
    await node.keep_adapters("r-1", adapter("pirate@1"))
    await until(lambda: "does not hold what it is to" in node.log())
    beats = len(node.head.heartbeats)
    await until(lambda: len(node.head.heartbeats) > beats + 12)
    assert node.log().count("does not hold what it is to") == 1
