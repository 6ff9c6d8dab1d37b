"""An agent with a warm pool: real processes, a zygote that keeps the protocol, or does not."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from penstock.v1 import nodes_pb2
from tests.control.node_agent.harness import (
    READY,
    FakeHead,
    Node,
    Status,
    of_this_test,
    running,
    until,
)

pytestmark = pytest.mark.processes

WARM, COLD = nodes_pb2.START_KIND_WARM, nodes_pb2.START_KIND_COLD


@dataclass
class Warm:
    """A node whose zygote is `fake_zygote.py`."""

    node: Node
    folder: Path

    def say(self, name: str, words: str = "") -> None:
        (self.folder / name).write_text(words)

    @property
    def pool(self) -> nodes_pb2.WarmPool:
        beats = self.node.head.heartbeats
        return beats[-1].warm_pool if beats else nodes_pb2.WarmPool()

    async def filled(self) -> int:
        """The pid of the member that waits."""
        await until(lambda: self.pool.waiting == 1 and self.pool.reason == "")
        return self.pids("members")[-1]

    def pids(self, name: str) -> list[int]:
        path = self.folder / name
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    async def ready(self, replica: str = "r-1", restarts: int = 0) -> Status:
        return await self.node.becomes(
            replica, lambda it: it.phase == READY and it.restarts == restarts
        )


@pytest.fixture
async def warm(
    tmp_path: Path, head: FakeHead, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Warm]:
    folder = tmp_path / "zygote"
    folder.mkdir()
    monkeypatch.setenv("PENSTOCK_TEST_ZYGOTE", str(folder))
    node = Node(tmp_path, head)
    node.start()
    yield Warm(node, folder)
    if node.process is not None and node.process.poll() is None:
        node.process.kill()
        node.process.wait()
    for pid in of_this_test(tmp_path):
        os.kill(pid, signal.SIGKILL)


async def test_a_replica_is_a_claimed_member_with_all_that_a_cold_one_has(warm: Warm) -> None:
    member = await warm.filled()
    await warm.node.start_replica("r-1")
    status = await warm.ready()
    assert (status.pid, status.start.kind, status.start.reason) == (member, WARM, "")
    argv = psutil.Process(member).cmdline()
    assert argv[argv.index("--replica-id") + 1] == "r-1"
    assert "PENSTOCK_TEST_ZYGOTE" in psutil.Process(member).environ()  # the agent's own
    assert "PENSTOCK_TEST_ZYGOTE" not in psutil.Process(warm.pids("zygote")[0]).environ()
    assert os.getpgid(member) == member
    await until(lambda: warm.pool.waiting == 1)
    assert (warm.pool.claims, warm.pool.cold_starts) == (1, 0)


async def test_a_killed_replica_is_claimed_anew_and_its_exit_code_is_known(warm: Warm) -> None:
    await warm.filled()
    await warm.node.start_replica("r-1")
    first = await warm.ready()
    os.kill(first.pid, signal.SIGKILL)
    second = await warm.ready(restarts=1)
    assert (second.exit_code, second.start.kind) == (-signal.SIGKILL, WARM)
    await warm.node.stop_replica("r-1")
    await until(lambda: not warm.node.head.last())
    assert not running(second.pid)


async def test_a_start_while_the_zygote_imports_is_cold_and_says_so(warm: Warm) -> None:
    warm.say("importing")
    await until(lambda: "imports" in warm.pool.reason)
    await warm.node.start_replica("r-1")
    status = await warm.ready()
    assert status.start.kind == COLD
    assert "imports" in status.start.reason
    (warm.folder / "importing").unlink()
    await warm.filled()


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        ("refuses", "it is another model"),
        ("mute", "did not answer within 1 s"),
        ("lies", "a member of the warm pool ended"),
    ],
)
async def test_a_member_that_cannot_costs_no_start(warm: Warm, says: str, reason: str) -> None:
    member = await warm.filled()
    warm.say(says, "it is another model")
    await warm.node.start_replica("r-1")
    status = await warm.ready()
    assert (status.start.kind, status.restarts) == (COLD, 0)
    assert reason in status.start.reason
    assert running(member) is (says == "refuses")


@pytest.mark.parametrize("says", ["dies", "does_nothing"])
async def test_a_claim_that_comes_to_nothing_is_started_cold_once_and_counts_as_no_failure(
    warm: Warm, says: str
) -> None:
    member = await warm.filled()
    warm.say(says)
    await warm.node.start_replica("r-1")
    status = await warm.ready()
    assert (status.start.kind, status.restarts) == (COLD, 0)
    words = "did not register within 3 s" if says == "does_nothing" else "it dies"
    assert words in status.start.reason
    assert words in status.last_error
    assert not running(member)


async def test_a_replica_that_always_ends_is_a_crash_loop_as_without_a_pool(warm: Warm) -> None:
    await warm.filled()
    await warm.node.start_replica("r-1", "exit_code=70")
    status = await warm.node.becomes("r-1", lambda it: "crash loop" in it.last_error)
    assert status.restarts >= 3
    assert "the fake exits with 70" in status.last_error


async def test_a_zygote_that_cannot_be_one_is_tried_again_and_says_why(warm: Warm) -> None:
    await warm.filled()
    warm.say("cannot", "no engine here")
    os.kill(warm.pids("zygote")[0], signal.SIGKILL)
    await until(lambda: "no engine here" in warm.pool.reason)
    (warm.folder / "cannot").unlink()
    await warm.filled()


async def test_what_is_killed_of_a_pool_comes_again_and_replicas_serve_on(warm: Warm) -> None:
    await warm.filled()
    await warm.node.start_replica("r-1")
    replica = await warm.ready()
    member = await warm.filled()
    os.kill(member, signal.SIGKILL)
    await until(lambda: warm.pids("members")[-1] != member)
    member = await warm.filled()
    os.kill(warm.pids("zygote")[-1], signal.SIGKILL)
    await until(lambda: not running(member))
    await until(lambda: warm.pids("members")[-1] != member)
    await warm.filled()
    assert len(warm.pids("zygote")) == 2
    os.kill(replica.pid, signal.SIGKILL)  # its parent is gone, and its exit code with it
    again = await warm.ready(restarts=1)
    assert (again.start.kind, again.exit_code) == (WARM, 0)
    assert "not known" in again.last_error


async def test_a_killed_agent_leaves_its_replica_and_nothing_of_its_pool(warm: Warm) -> None:
    await warm.filled()
    await warm.node.start_replica("r-1")
    replica = await warm.ready()
    member = await warm.filled()
    warm.node.signal(signal.SIGKILL)
    await warm.node.ended()
    await until(lambda: not running(member) and not running(warm.pids("zygote")[0]))
    warm.node.head.heartbeats.clear()
    warm.node.start()
    adopted = await warm.ready()
    assert (adopted.pid, adopted.start.kind) == (replica.pid, WARM)
    await warm.filled()
    assert len(warm.pids("zygote")) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_an_agent_that_stops_ends_its_pool(warm: Warm, number: signal.Signals) -> None:
    await warm.filled()
    await warm.node.start_replica("r-1")
    replica = await warm.ready()
    member = await warm.filled()
    warm.node.signal(number)
    assert await warm.node.ended() == 0
    await until(lambda: not running(member) and not running(warm.pids("zygote")[0]))
    assert running(replica.pid) is (number is signal.SIGTERM)
