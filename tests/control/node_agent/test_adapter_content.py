"""Adapters from a head to the replicas of a node: a real agent process, killed and without room."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import grpc.aio
import pytest

from penstock.adapters.fitness import FamilyLimits
from penstock.adapters.version import CONTENT_FILES, Digest
from penstock.control.store.adapters.content import AdapterContents
from penstock.v1 import inference_pb2, nodes_pb2
from tests.control.node_agent.harness import FakeHead, Node, until

pytestmark = pytest.mark.processes

PIRATE = Path("replica/penstock/replica/default_model/weights/adapters/pirate")


@pytest.fixture
def pirate(head: FakeHead, tmp_path: Path) -> Digest:
    """An adapter that the head has."""
    digest = AdapterContents(tmp_path / "of-head").take_in(PIRATE, FamilyLimits()).digest
    head.adapters[digest] = tmp_path / "of-head" / digest
    return digest


async def content(node: Node, digest: str) -> Path:
    """What a replica is told."""
    reply = await node.call("AdapterContent", nodes_pb2.AdapterContentRequest(digest=digest))
    return Path(reply.directory)


async def test_replicas_that_ask_at_once_share_one_fetch(
    node: Node, head: FakeHead, pirate: Digest
) -> None:
    first, second = await asyncio.gather(content(node, pirate), content(node, pirate))
    assert first == second == node.data_dir / "adapter-cache" / pirate
    for name in CONTENT_FILES:
        assert (first / name).read_bytes() == (PIRATE / name).read_bytes()
    assert head.fetched == [pirate]


async def test_an_agent_that_is_killed_while_it_fetches_leaves_nothing_half(
    node: Node, head: FakeHead, pirate: Digest
) -> None:
    head.holds_back = True
    cache = node.data_dir / "adapter-cache"
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(refused(node, pirate))
        await until(lambda: any(cache.glob("fetching/*/*")))
        node.signal(signal.SIGKILL)
        await node.ended()
        assert await asking is grpc.StatusCode.UNAVAILABLE
    head.holds_back = False
    registrations = len(head.registrations)
    node.start()
    await until(lambda: len(head.registrations) > registrations)
    assert not any(cache.glob("fetching/*"))
    assert (await content(node, pirate)).is_dir()
    assert len(head.fetched) == 2


async def test_an_agent_that_stops_leaves_who_waits_and_ends(
    node: Node, head: FakeHead, pirate: Digest
) -> None:
    head.holds_back = True
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(refused(node, pirate))
        await until(lambda: bool(head.fetched))
        node.signal(signal.SIGTERM)
        assert await node.ended(8.0) == 0
        assert await asking is grpc.StatusCode.UNAVAILABLE


async def test_why_there_is_no_content_is_told_by_its_code(
    node: Node, head: FakeHead, pirate: Digest
) -> None:
    assert await refused(node, "0" * 64) is grpc.StatusCode.NOT_FOUND
    assert await refused(node, "pirate") is grpc.StatusCode.INVALID_ARGUMENT
    fetching = node.data_dir / "adapter-cache" / "fetching"
    fetching.rmdir()
    fetching.write_text("in the way")
    assert await refused(node, pirate) is grpc.StatusCode.UNAVAILABLE
    fetching.unlink()
    await head.stop()
    assert await refused(node, pirate) is grpc.StatusCode.UNAVAILABLE
    await head.start()


async def test_what_a_replica_holds_is_handed_out_while_the_head_is_away(
    node: Node, head: FakeHead, pirate: Digest
) -> None:
    adapter = inference_pb2.Adapter(name="pirate@1", digest=pirate)
    await node.start_replica("r-1", adapters=[adapter], max_adapters=1)
    await node.becomes("r-1", lambda it: list(it.adapter_digests) == [pirate])
    await content(node, pirate)
    await head.stop()
    assert (await content(node, pirate)).is_dir()
    assert head.fetched == [pirate]
    await head.start()


async def refused(node: Node, digest: str) -> grpc.StatusCode:
    """The code with which an agent says that it has no such content."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await content(node, digest)
    return caught.value.code()
