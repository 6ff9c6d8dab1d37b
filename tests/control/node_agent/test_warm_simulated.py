"""An agent and a real zygote, of the simulated engine: replicas are claimed, killed, adopted."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from penstock.v1 import nodes_pb2
from tests.control.node_agent.harness import READY, FakeHead, Node, of_this_test, running, until

pytestmark = pytest.mark.processes


def zygotes(node: Node) -> list[psutil.Process]:
    """Of this node, with the members that wait."""
    assert node.process is not None
    agent = psutil.Process(node.process.pid)
    found = []
    for it in agent.children():
        with suppress(psutil.NoSuchProcess):
            if "penstock.replica.warm_pool" in it.cmdline():
                found.append(it)
    return found


async def filled(node: Node) -> psutil.Process:
    """The zygote, once a member of it waits."""
    beats = node.head.heartbeats
    await until(lambda: bool(beats) and beats[-1].warm_pool.waiting == 1, 60)
    (zygote,) = zygotes(node)
    return zygote


async def test_what_is_killed_of_a_real_pool_comes_again_and_nothing_stays(
    tmp_path: Path, head: FakeHead, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_TEST_ZYGOTE", "simulated")
    monkeypatch.setenv("PENSTOCK_TEST_TOKEN", "no zygote's affair")
    node = Node(tmp_path, head)
    node.start()
    zygote = await filled(node)
    assert "PENSTOCK_TEST_TOKEN" not in zygote.environ()
    try:
        await node.start_replica("r-1")
        first = await node.ready("r-1")
        assert first.start.kind == nodes_pb2.START_KIND_WARM
        stages = [each.name for each in first.start.stages]
        assert stages[0] == "claim"
        assert "import" not in stages

        os.kill(first.pid, signal.SIGKILL)
        second = await node.becomes("r-1", lambda it: it.phase == READY and it.restarts == 1)
        assert (second.exit_code, second.start.kind) == (-9, nodes_pb2.START_KIND_WARM)

        first_zygote = zygote.pid
        os.kill(first_zygote, signal.SIGKILL)
        await until(lambda: [it.pid for it in zygotes(node)] not in ([], [first_zygote]))
        zygote = await filled(node)
        (member,) = [it.pid for it in zygote.children()]

        zygote.suspend()  # it reads nothing any more
        node.signal(signal.SIGKILL)
        await node.ended()
        await until(lambda: not running(zygote.pid) and not running(member))
        head.heartbeats.clear()
        node.start()
        adopted = await node.ready("r-1")
        assert (adopted.pid, adopted.restarts) == (second.pid, 1)
        await filled(node)
    finally:
        node.signal(signal.SIGINT)
        assert await node.ended() == 0
    await until(lambda: not of_this_test(tmp_path))
