"""Shadows in a real head with a real comparer: told, counted, killed, judged, forgotten. The
gateway is simulated: it tells what shadows answered as gateways do."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest

from penstock.v1 import routes_pb2, shadow_pb2, shadow_pb2_grpc
from tests.control.head_process import HeadProcess, running_head
from tests.control.test_head_tenants import Connected, ask
from tests.fakes.control_waiting import eventually
from tests.fakes.shadow_batches import answer, batch, pair

pytestmark = pytest.mark.processes

SHADOW = {"name": "s", "primary": "chat", "candidate": "small", "share_permille": 1000}


@pytest.fixture
async def head(tmp_path: Path) -> AsyncIterator[HeadProcess]:
    async with running_head(tmp_path / "data") as head:
        for name in ("chat", "small"):
            await head.put(name, replicas=0)
        yield head


async def make(head: HeadProcess, **more: object) -> str:
    """The uid of a new shadow."""
    return str((await ask(head, "POST", "shadows", **SHADOW, **more))["uid"])


async def routes(head: HeadProcess) -> routes_pb2.RouteSnapshot:
    """What gateways are told now."""
    async with Connected(head) as stub:
        async for snapshot in stub.Watch(routes_pb2.WatchRoutesRequest(gateway_id="gw-1")):
            return snapshot  # type: ignore[no-any-return]
    raise AssertionError("no snapshot")


async def told(head: HeadProcess) -> routes_pb2.RouteSnapshot:
    """The routes, once they tell of the shadow and of whom to hand its pairs to."""

    async def found() -> routes_pb2.RouteSnapshot | None:
        snapshot = await routes(head)
        return snapshot if snapshot.shadows and snapshot.comparer_address else None

    snapshot = await eventually(found, "gateways are told of the shadow")
    assert snapshot is not None
    return snapshot


async def hand_over(address: str, batches: Sequence[shadow_pb2.ShadowBatch]) -> list[int]:
    """The numbers of what the comparer has counted."""
    async with grpc.aio.insecure_channel(address) as channel:
        stub = shadow_pb2_grpc.ShadowStub(channel)  # type: ignore[no-untyped-call]
        return [each.number async for each in stub.Record(iter(batches))]


def comparer_of(head: HeadProcess) -> int:
    """Its pid."""
    return int(json.loads((head.data_dir / "comparer.json").read_text())["pid"])


async def report(head: HeadProcess) -> dict[str, Any]:
    found = await ask(head, "GET", "shadows/s/report")
    assert isinstance(found["report"], dict)
    return found["report"]


async def test_a_candidate_that_fails_is_found_worse_though_the_comparer_is_killed(
    head: HeadProcess,
) -> None:
    uid = await make(head, until={"pairs": 150}, self_permille=100)
    snapshot = await told(head)
    (rule,) = snapshot.shadows
    assert (rule.uid, rule.primary, rule.candidate) == (uid, "chat", "small")
    assert (rule.share_permille, rule.self_permille, rule.max_concurrent) == (1000, 100, 4)
    assert "/v1/chat/completions" in rule.endpoints

    def fails(number: int) -> shadow_pb2.ShadowPair:
        return pair(number, rule=uid, candidate=answer("no", status=500))

    batches = [batch(n, [fails(100 * n + m) for m in range(10)]) for n in range(1, 17)]
    assert await hand_over(snapshot.comparer_address, batches[:8]) == [1, 2, 3, 4, 5, 6, 7, 8]
    before = comparer_of(head)
    os.kill(before, signal.SIGKILL)
    await eventually(lambda: _is_another(head, before), "another comparer is started")
    address = (await told(head)).comparer_address
    assert await hand_over(address, batches[6:]) == list(range(7, 17))

    async def ended() -> bool:
        found = await ask(head, "GET", "shadows/s")
        return bool(found["state"] == "ended" and found["pairs"] == 160)

    await eventually(ended, "the shadow has its pairs")
    found = await report(head)
    assert (found["verdict"], found["pairs"]) == ("worse", 160)
    (errors,) = (check for check in found["checks"] if check["name"] == "error")
    assert (errors["verdict"], errors["pairs"], errors["difference"]) == ("worse", 160, 1.0)
    assert not (await routes(head)).shadows  # nothing more is repeated


async def test_a_shadow_is_paused_resumed_and_forgotten(head: HeadProcess) -> None:
    uid = await make(head)
    address = (await told(head)).comparer_address
    await hand_over(address, [batch(1, [pair(1, rule=uid)])])
    assert (await report(head))["pairs"] == 1
    await ask(head, "POST", "shadows/s/pause")

    async def tells(shadows: int) -> bool:
        return len((await routes(head)).shadows) == shadows

    await eventually(lambda: tells(0), "gateways are told of the pause")
    await ask(head, "POST", "shadows/s/resume")
    await eventually(lambda: tells(1), "gateways are told that it goes on")
    await ask(head, "DELETE", "shadows/s")

    async def forgotten() -> bool:
        files = head.data_dir.glob("shadow.sqlite*")
        return uid.encode() not in b"".join(each.read_bytes() for each in files)

    await eventually(forgotten, "nothing of it is kept")


async def test_a_comparer_ends_with_its_head_and_the_next_head_goes_on_counting(
    head: HeadProcess,
) -> None:
    uid = await make(head)
    await hand_over((await told(head)).comparer_address, [batch(1, [pair(1, rule=uid)])])
    comparer = psutil.Process(comparer_of(head))
    head.end(signal.SIGKILL)

    async def gone() -> bool:
        return not comparer.is_running() or comparer.status() == psutil.STATUS_ZOMBIE

    await eventually(gone, "the comparer follows its head")
    await head.start()
    address = (await told(head)).comparer_address
    await hand_over(address, [batch(1, [pair(1, rule=uid)]), batch(2, [pair(2, rule=uid)])])
    assert (await report(head))["pairs"] == 2


async def test_without_a_shadow_there_is_no_comparer(head: HeadProcess) -> None:
    assert head.process
    assert psutil.Process(head.process.pid).children() == []


async def _is_another(head: HeadProcess, before: int) -> bool:
    return comparer_of(head) != before
