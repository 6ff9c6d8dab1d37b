"""Replicas that a node agent puts to sleep and wakes: a real agent process, fake replicas."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest

from penstock.control.node_agent.nap import Nap
from penstock.control.node_agent.replica_record import Phase, ReplicaRecord
from penstock.v1 import nodes_pb2
from tests.control.node_agent.harness import (
    ASLEEP,
    READY,
    FakeHead,
    Node,
    Status,
    running,
    until,
)

pytestmark = pytest.mark.processes


async def _asleep(node: Node, wakes: str = "well", **facts: int) -> Status:
    """One that sleeps."""
    await node.start_replica("r-1", f"wakes={wakes}", sleep=1, **facts)
    await node.ready("r-1")
    await node.stop_replica("r-1", sleep=True)
    return await node.becomes("r-1", lambda it: it.phase == ASLEEP)


async def _wake(node: Node, wakes: str = "well", **facts: int) -> Status:
    return await node.start_replica("r-1", f"wakes={wakes}", sleep=1, **facts)


async def test_one_that_sleeps_is_woken_as_the_process_that_it_was(node: Node) -> None:
    first = await _asleep(node)
    await node.stop_replica("r-1", sleep=True)  # it sleeps already
    await _wake(node)
    await _wake(node)
    status = await node.becomes("r-1", lambda it: it.phase == READY)
    assert (status.pid, status.address) == (first.pid, first.address)
    assert (status.wakes, status.restarts) == (1, 0)
    assert status.ready_at_ms > first.ready_at_ms


async def test_one_that_sleeps_is_left_alone_for_longer_than_a_hang_lasts(node: Node) -> None:
    first = await _asleep(node)
    said = len(node.head.heartbeats)
    await until(lambda: len(node.head.heartbeats) > said + 20)  # twice as long as hangs last
    assert node.head.last()["r-1"].phase == ASLEEP
    assert running(first.pid)


async def test_what_knows_no_sleep_is_ended(node: Node, head: FakeHead) -> None:
    await node.start_replica("r-1")
    status = await node.ready("r-1")
    await node.stop_replica("r-1", sleep=True)
    await until(lambda: "r-1" not in head.last())
    assert not running(status.pid)
    # A heartbeat tells the head, too, where one goes out before the replica has ended.
    assert "it is ended: its version knows no sleep" in node.log()


async def test_one_that_sleeps_is_ended_when_it_is_to_stop(node: Node, head: FakeHead) -> None:
    first = await _asleep(node)
    await node.stop_replica("r-1")
    await until(lambda: "r-1" not in head.last())
    assert not running(first.pid)


async def test_one_that_dies_in_its_sleep_is_not_started_again(node: Node, head: FakeHead) -> None:
    first = await _asleep(node)
    os.kill(first.pid, signal.SIGKILL)
    await until(lambda: "r-1" not in head.last())
    await _wake(node)  # asked for all the same, it is started
    assert (await node.ready("r-1")).pid != first.pid


async def test_one_that_wakes_wrongly_is_started_again_and_the_head_hears_why(node: Node) -> None:
    first = await _asleep(node, "wrong")
    await _wake(node, "wrong")
    status = await node.becomes("r-1", lambda it: it.phase == READY and it.restarts == 1)
    assert status.pid != first.pid
    assert (status.exit_code, status.wakes) == (75, 0)
    assert status.last_error == "woke wrongly: the fake is to"


async def test_one_that_does_not_wake_in_time_is_killed_and_started_again(node: Node) -> None:
    first = await _asleep(node, "never", start_limit_ms=2000)
    await _wake(node, "never", start_limit_ms=2000)
    status = await node.becomes("r-1", lambda it: it.phase == READY and it.restarts == 1)
    assert not running(first.pid)
    assert status.exit_code == 75
    assert "did not wake: no answer within 2 s" in status.last_error


async def test_the_next_agent_takes_up_what_sleeps_and_wakes_it(node: Node) -> None:
    first = await _asleep(node)
    node.signal(signal.SIGKILL)
    await node.ended()
    node.head.heartbeats.clear()
    node.start()
    await node.becomes("r-1", lambda it: it.phase == ASLEEP)
    await _wake(node)
    status = await node.becomes("r-1", lambda it: it.phase == READY)
    assert (status.pid, status.wakes) == (first.pid, 1)


async def test_one_that_is_stopped_as_it_is_woken_ends() -> None:
    records = [ReplicaRecord(nodes_pb2.ReplicaSpec(replica_id="r-1"), Phase.ASLEEP)]

    def become(phase: Phase, **changes: Any) -> None:
        records.append(records[-1].advance(phase))

    needs: Any = None  # what it takes to wake, or to fall asleep, is not to be touched
    nap = Nap(lambda: records[-1], become, lambda: None, lambda drain: None, needs)
    async with asyncio.TaskGroup() as tasks:
        stays = tasks.create_task(nap.accompany())
        await asyncio.sleep(0)
        nap.wake()
        become(Phase.DRAINING)
        for _ in range(5):
            await asyncio.sleep(0)
        stays.cancel()
    assert [each.phase for each in records] == [Phase.ASLEEP, Phase.STARTING, Phase.DRAINING]
