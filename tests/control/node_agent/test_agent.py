"""What a node agent and its head tell each other: a real agent process, a head of two methods."""

from __future__ import annotations

import json
import os
import signal
from hashlib import sha256

import psutil
import pytest

from penstock.v1 import nodes_pb2
from tests.control.node_agent.harness import (
    READY,
    FakeHead,
    Node,
    of_this_test,
    running,
    until,
)

pytestmark = pytest.mark.processes


async def test_the_agent_registers_and_tells_what_the_machine_has(
    node: Node, head: FakeHead
) -> None:
    await until(lambda: bool(head.registrations))
    info = head.registrations[0].node
    assert info.node_id == "node-1"
    assert node.process is not None
    assert info.pid == node.process.pid
    assert info.resources.memory_bytes == psutil.virtual_memory().total
    assert info.zone == "zone-1"
    assert info.resources.cpus == psutil.cpu_count()


async def test_everything_runs_on_while_the_head_is_away(node: Node, head: FakeHead) -> None:
    await node.start_replica("r-1")
    before = await node.ready("r-1")
    await head.stop()
    os.kill(before.pid, signal.SIGKILL)
    await until(lambda: len(of_this_test(node.data_dir)) == 1 and not running(before.pid))
    await until(lambda: "the head does not answer" in node.log())
    registrations = len(head.registrations)
    await head.start()
    await until(lambda: len(head.registrations) > registrations)
    await node.becomes("r-1", lambda it: it.phase == READY and it.restarts == 1)


async def test_a_head_that_forgot_the_node_hears_it_register_again(
    node: Node, head: FakeHead
) -> None:
    await node.start_replica("r-1")
    await node.ready("r-1")
    head.forgetful = True
    await until(lambda: len(head.registrations) == 2)
    assert [each.replica_id for each in head.registrations[1].replicas] == ["r-1"]


async def test_a_program_of_the_head_runs_and_is_told_of_until_nobody_wants_it(
    node: Node, head: FakeHead
) -> None:
    text = b"async def route(request, engines, stats): return RouteDecision(engines[0])\n"
    digest = sha256(text).hexdigest()
    head.texts[digest] = text
    head.programs = [nodes_pb2.RouterProgram(deployment_uid="u", deployment="c", digest=digest)]
    await until(lambda: any(it.running for beat in head.heartbeats[-1:] for it in beat.programs))
    announced = json.loads((node.data_dir / "programs" / "u.json").read_text())
    assert announced["digests"] == [digest]
    head.programs = []
    await until(lambda: not running(announced["pid"]) and not head.heartbeats[-1].programs)
    await until(lambda: not list((node.data_dir / "programs").iterdir()))
