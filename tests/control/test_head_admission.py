"""Real agents at the door of a real head: who is let in, and what those do who are not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.control.head_process import HeadProcess, running_head
from tests.fakes.control_waiting import eventually

pytestmark = pytest.mark.processes


class Agent:
    """A node agent of the id "node-1" with a data directory of its own."""

    def __init__(self, data_dir: Path, head: HeadProcess) -> None:
        data_dir.mkdir()
        self.data_dir = data_dir
        self._head = head
        self.start()

    def start(self) -> None:
        argv = [sys.executable, "-m", "tests.fakes.node_with_fake_replicas"]
        with (self.data_dir / "agent.log").open("ab") as log:
            argv += [str(self.data_dir), self._head.rpc]
            self.process = subprocess.Popen(argv, stderr=log)

    def end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.wait(timeout=30)

    async def is_refused(self, why: str) -> None:
        async def said() -> bool:
            log = (self.data_dir / "agent.log").read_text()
            return "the head does not let this agent in" in log and why in log

        await eventually(said, f"the agent says that it is refused: {why}")


@pytest.fixture
async def head(tmp_path: Path) -> AsyncIterator[HeadProcess]:
    async with running_head(tmp_path / "head") as head:
        yield head


@pytest.fixture
def first(tmp_path: Path, head: HeadProcess) -> Iterator[Agent]:
    agent = Agent(tmp_path / "first", head)
    yield agent
    if agent.process.poll() is None:
        agent.end(signal.SIGINT)  # with its replicas


async def _registered(head: HeadProcess, agent: Agent) -> None:
    async def listed() -> bool:
        found = [(n["pid"], n["state"]) for n in await head.get("nodes")]
        return found == [(agent.process.pid, "ready")]

    await eventually(listed, "the agent is registered")


async def _served(head: HeadProcess) -> list[tuple[str, int, str]]:
    return [(r["id"], r["pid"], r["state"]) for r in await head.get("replicas")]


async def _refused(head: HeadProcess) -> list[dict[str, Any]]:
    return list((await head.get("version"))["refused"])


async def test_a_second_agent_of_a_nodes_id_hurts_nobody_and_the_status_names_it(
    tmp_path: Path, head: HeadProcess, first: Agent
) -> None:
    await head.put("mini")
    await _registered(head, first)

    async def ready() -> bool:
        return [state for _, _, state in await _served(head)] == ["ready"]

    await eventually(ready, "the replica is ready")
    served, told = await _served(head), (await head.get("version"))["snapshot_version"]
    second = Agent(tmp_path / "second", head)
    try:
        await second.is_refused("another agent of node 'node-1' is live at")
        (refused,) = await _refused(head)
        assert refused["who"].startswith("node node-1 at 127.0.0.1:")
        assert second.process.poll() is None
        await _registered(head, first)
        assert await _served(head) == served
        assert (await head.get("version"))["snapshot_version"] == told
        first.end(signal.SIGKILL)  # the next one on its data directory need not wait
        first.start()
        await _registered(head, first)
        assert await _served(head) == served
        first.end(signal.SIGTERM)  # it says so, and is followed by whoever is there
        await _registered(head, second)
    finally:
        second.end(signal.SIGINT)
        first.start()
        await _registered(head, first)


async def test_an_agent_of_another_cluster_is_refused_and_the_head_stays_in_command(
    tmp_path: Path, head: HeadProcess, first: Agent
) -> None:
    await _registered(head, first)
    first.end(signal.SIGTERM)
    stamp = {"cluster_id": "elsewhere", "epoch": 7, "revision": 99}
    (first.data_dir / "node-agent.stamp").write_text(json.dumps(stamp))
    first.start()
    await first.is_refused("belongs to another cluster")
    assert [each["who"].split(" at ")[0] for each in await _refused(head)] == ["node node-1"]
    assert (await head.get("version"))["held"] == ""
    await head.put("mini")
