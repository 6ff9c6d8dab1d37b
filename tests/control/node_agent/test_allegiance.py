"""A node agent takes orders of the newest head that it has heard, and of none before it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.errors import ForeignHead
from penstock.control.node_agent.allegiance import UNDER_WAY, Allegiance, refusal
from penstock.control.state.stamp import Stamp
from penstock.v1 import common_pb2, nodes_pb2
from tests.control.node_agent.harness import FakeHead, Node, running, until

OURS = Stamp("ours", 2, 10)
stamps = st.builds(Stamp, st.sampled_from(["ours", "other"]), st.integers(1, 3), st.integers(0, 3))


@given(stamps)
def test_the_first_stamp_is_taken_whatever_it_is(offered: Stamp) -> None:
    assert refusal(Stamp(), offered) == ""


@given(st.lists(stamps, max_size=30))
def test_what_is_accepted_never_goes_back(offers: list[Stamp]) -> None:
    accepted = Stamp()
    for offered in offers:
        if not refusal(accepted, offered):
            order = (offered.epoch, offered.revision)
            assert not accepted or accepted.cluster_id == offered.cluster_id
            assert order >= (accepted.epoch, accepted.revision)
            accepted = offered


@pytest.mark.parametrize(
    "offered",
    [Stamp("other", 9, 99), Stamp("ours", 1, 99), Stamp("ours", 2, 9), Stamp()],
    ids=["another cluster", "an older epoch", "a restored store", "no stamp"],
)
def test_orders_of_another_or_an_older_head_are_refused_with_what_to_do(
    tmp_path: Path, offered: Stamp
) -> None:
    clock = _Clock()
    allegiance = Allegiance(tmp_path / "stamp", clock)
    allegiance.accept(OURS)
    clock.at += UNDER_WAY
    with pytest.raises(ForeignHead, match="--take-over"):
        allegiance.accept(offered)
    with pytest.raises(ForeignHead, match="--take-over"):
        Allegiance(tmp_path / "stamp", clock).accept(offered)
    assert Allegiance(tmp_path / "stamp", clock).stamp == OURS


class _Clock:
    """Seconds, moved by hand."""

    at = 0.0

    def __call__(self) -> float:
        return self.at


waits = st.floats(0, UNDER_WAY / 4)


@given(st.lists(st.tuples(waits, st.integers(1, 9), waits), max_size=30))
def test_what_one_head_sent_is_taken_in_whatever_order_it_comes(
    tmp_path_factory: pytest.TempPathFactory, sent: list[tuple[float, int, float]]
) -> None:
    """Each message some time after the one before, after so many changes, and so long under way."""
    at, revision, coming = 0.0, 10, []
    for after, changes, under_way in sent:
        at, revision = at + after, revision + changes
        coming.append((at + under_way, Stamp("ours", 2, revision)))
    clock = _Clock()
    allegiance = Allegiance(tmp_path_factory.mktemp("agent") / "stamp", clock)
    for clock.at, stamp in sorted(coming, key=lambda message: message[0]):
        allegiance.accept(stamp)
    assert allegiance.stamp == max((one for _, one in coming), key=_revision, default=Stamp())


def _revision(stamp: Stamp) -> int:
    return stamp.revision


def test_a_head_that_took_over_is_obeyed_though_its_store_is_older(tmp_path: Path) -> None:
    allegiance = Allegiance(tmp_path / "stamp", _Clock())
    allegiance.accept(OURS)
    allegiance.accept(Stamp("ours", 3, 1))
    assert allegiance.stamp == Stamp("ours", 3, 1)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"epoch": "x"}'])
def test_a_file_that_cannot_be_read_leaves_the_agent_free(tmp_path: Path, content: str) -> None:
    (tmp_path / "stamp").write_text(content)
    assert Allegiance(tmp_path / "stamp", _Clock()).stamp == Stamp()


def stamped(cluster: str, epoch: int, revision: int) -> common_pb2.ClusterStamp:
    return common_pb2.ClusterStamp(cluster_id=cluster, epoch=epoch, revision=revision)


async def refused(node: Node, method: str, request: Any) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match="--take-over") as error:
        await node.call(method, request)
    assert error.value.code() == grpc.StatusCode.FAILED_PRECONDITION


@pytest.mark.processes
async def test_a_foreign_head_can_neither_start_nor_stop_nor_list(
    node: Node, head: FakeHead
) -> None:
    head.stamp = stamped("ours", 1, 5)
    await node.start_replica("r-1")
    before = await node.ready("r-1")
    foreign = stamped("other", 7, 7)
    spec = nodes_pb2.ReplicaSpec(replica_id="r-2", deployment="mini", engine="simulated")
    await refused(node, "StartReplica", nodes_pb2.StartReplicaRequest(spec=spec, stamp=foreign))
    stop = nodes_pb2.StopReplicaRequest(replica_id="r-1", stamp=foreign)
    await refused(node, "StopReplica", stop)
    await refused(node, "ListReplicas", nodes_pb2.ListReplicasRequest(stamp=foreign))
    assert running(before.pid)


@pytest.mark.processes
async def test_the_agent_tells_heads_whose_it_is_also_after_a_restart(
    node: Node, head: FakeHead
) -> None:
    head.stamp = stamped("ours", 1, 5)
    await until(lambda: bool(head.heartbeats) and head.heartbeats[-1].stamp == head.stamp)
    assert json.loads((node.data_dir / "node-agent.stamp").read_text())["cluster_id"] == "ours"
    assert node.process is not None
    node.process.kill()
    await node.ended()
    head.stamp = stamped("other", 1, 1)
    node.start()
    await until(lambda: len(head.registrations) == 2)
    assert head.registrations[1].stamp == stamped("ours", 1, 5)


def test_an_agent_whose_data_directory_is_gone_stays_with_its_head(tmp_path: Path) -> None:
    clock = _Clock()
    allegiance = Allegiance(tmp_path / "stamp", clock)
    assert allegiance.trouble() == ""
    allegiance.accept(OURS)
    assert allegiance.trouble() == ""
    (tmp_path / "stamp").unlink()
    clock.at += UNDER_WAY
    assert "mounted" in allegiance.trouble()
    with pytest.raises(ForeignHead):
        allegiance.accept(Stamp("other", 9, 99))
