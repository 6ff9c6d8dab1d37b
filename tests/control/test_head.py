"""The head as a process: it reconciles, it dies, it comes back, and routes outlive it."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest

from penstock.v1 import routes_pb2, routes_pb2_grpc
from tests.control.head_process import START, HeadProcess, running_head
from tests.fakes.control_agent import FakeAgent, serving_agent
from tests.fakes.control_waiting import eventually

pytestmark = pytest.mark.processes


class Watcher:
    """A gateway's subscription: keeps every snapshot, subscribes again when it breaks."""

    def __init__(self) -> None:
        self.snapshots: list[routes_pb2.RouteSnapshot] = []

    async def follow(self, head: HeadProcess) -> None:
        while True:
            options = [("grpc.use_local_subchannel_pool", 1)]
            async with grpc.aio.insecure_channel(head.rpc, options=options) as channel:
                stub = routes_pb2_grpc.RoutesStub(channel)  # type: ignore[no-untyped-call]
                have = self.snapshots[-1].version if self.snapshots else 0
                request = routes_pb2.WatchRoutesRequest(
                    gateway_id="gw-t",
                    have_version=have,
                    stamp=self.snapshots[-1].stamp if self.snapshots else None,
                )
                with suppress(grpc.aio.AioRpcError):  # the head went
                    async for snapshot in stub.Watch(request, wait_for_ready=True):
                        self.snapshots.append(snapshot)

    async def routes(self, count: int) -> bool:
        latest = self.snapshots[-1] if self.snapshots else routes_pb2.RouteSnapshot()
        ready = [r for r in latest.replicas if r.state == 2]
        return len(ready) == count


@pytest.fixture
async def head(tmp_path: Path) -> AsyncIterator[HeadProcess]:
    async with running_head(tmp_path / "data") as head:
        yield head


@asynccontextmanager
async def beside(*work: Any) -> AsyncIterator[None]:
    """Runs coroutines beside the block, and ends them with it."""
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(one) for one in work]
        yield
        for task in running:
            task.cancel()


@asynccontextmanager
async def reporting_agent(head: HeadProcess) -> AsyncIterator[FakeAgent]:
    async with serving_agent() as agent, beside(agent.report_to(head.rpc)):
        yield agent


async def test_a_deployment_becomes_replicas_and_routes(head: HeadProcess) -> None:
    watcher = Watcher()
    async with reporting_agent(head) as agent, beside(watcher.follow(head)):
        await head.put("mini", replicas=0, engine_args={"ttft_ms": 5}, max_adapters=2)
        digest = await head.offer_pirate("mini")
        await head.put("mini", replicas=2, engine_args={"ttft_ms": 5}, max_adapters=2)
        await eventually(lambda: head.is_ready("mini"), "two replicas are ready")
        await eventually(lambda: watcher.routes(2), "the gateway hears of both")
        spec = agent.specs[0]
        assert (spec.engine, spec.served_name, list(spec.engine_args)) == (
            "simulated",
            "mini",
            ["ttft_ms=5"],
        )
        assert [(a.name, a.digest) for a in spec.adapters] == [("pirate@1", digest)]
        assert (spec.max_adapters, spec.max_adapter_rank) == (2, 16)
        (route,) = watcher.snapshots[-1].deployments
        assert [(a.alias, a.adapter) for a in route.aliases] == [("p", "pirate@1")]
        assert (route.name, route.max_model_len) == ("mini", 2048)
        (node,) = await head.get("nodes")
        assert (node["id"], node["state"], node["pid"]) == ("n1", "ready", 1)


async def test_kill_9_of_the_head_takes_no_route_away(head: HeadProcess) -> None:
    watcher = Watcher()
    async with reporting_agent(head) as agent, beside(watcher.follow(head)):
        await head.put("mini", replicas=2)
        await eventually(lambda: watcher.routes(2), "the gateway hears of both replicas")
        before = len(watcher.snapshots)
        ids = set(agent.replicas)
        head.end(signal.SIGKILL)
        await head.start()

        async def heard_again() -> bool:
            return len(watcher.snapshots) > before and await head.is_ready("mini")

        await eventually(heard_again, "the gateway hears the restarted head")
        await eventually(lambda: _registrations(agent, 2), "the agent registers again")
        for snapshot in watcher.snapshots[before:]:
            assert {r.id for r in snapshot.replicas} == ids
        versions = [snapshot.version for snapshot in watcher.snapshots]
        assert versions == sorted(set(versions))
        assert set(agent.replicas) == ids
        assert agent.stopped == []


async def test_a_restarted_head_keeps_routes_though_no_agent_calls(head: HeadProcess) -> None:
    async with serving_agent() as agent:
        async with beside(agent.report_to(head.rpc)):
            await head.put("mini", replicas=1)
            await eventually(lambda: head.is_ready("mini"), "the replica is ready")
        head.end(signal.SIGKILL)
        await head.start()

        async def node_is_lost() -> bool:
            return [n["state"] for n in await head.get("nodes")] == ["lost"]

        await eventually(node_is_lost, "the silent node is given up")
        watcher = Watcher()
        async with beside(watcher.follow(head)):
            await eventually(lambda: watcher.routes(1), "the replica is still routed to")
        (replica,) = await head.get("replicas")
        assert (replica["state"], replica["evidence"]) == ("ready", "answers")


async def test_a_replica_that_died_with_the_head_is_not_routed_to(head: HeadProcess) -> None:
    async with serving_agent() as agent:
        async with beside(agent.report_to(head.rpc)):
            await head.put("mini", replicas=2)
            await eventually(lambda: head.is_ready("mini"), "the replicas are ready")
        head.end(signal.SIGKILL)
        survivor, dead = sorted(agent.replicas)
        await agent.silence(dead)
        await head.start()
        watcher = Watcher()
        async with beside(watcher.follow(head)):
            await eventually(lambda: watcher.routes(1), "one replica is routed to")
        for snapshot in watcher.snapshots:
            assert [r.id for r in snapshot.replicas] == [survivor]


async def test_a_replica_at_whose_port_nothing_listens_is_ejected(head: HeadProcess) -> None:
    watcher = Watcher()
    async with reporting_agent(head) as agent, beside(watcher.follow(head)):
        await head.put("mini", replicas=2)
        await eventually(lambda: watcher.routes(2), "both are routed to")
        await agent.silence(sorted(agent.replicas)[0])
        await eventually(lambda: watcher.routes(1), "the silent one is ejected")


async def test_an_update_drains_the_old_replica_when_the_new_one_is_ready(
    head: HeadProcess,
) -> None:
    async with reporting_agent(head) as agent:
        await head.put("mini")
        await eventually(lambda: head.is_ready("mini"), "the replica is ready")
        (old,) = agent.replicas
        await head.put("mini", model="other")

        async def replaced() -> bool:
            return old not in agent.replicas and await head.is_ready("mini")

        await eventually(replaced, "the replica is replaced")
        assert [(s.model, s.revision) for s in agent.specs[-1:]] == [("other", 2)]
        first, second = agent.specs
        assert first.deployment_uid == second.deployment_uid
        assert first.template_digest != second.template_digest
        assert agent.stopped == [old]


async def test_what_an_agent_refuses_is_told_in_the_status(head: HeadProcess) -> None:
    async with reporting_agent(head) as agent:
        agent.refuse = "no such engine here"
        await head.put("mini")

        async def told() -> bool:
            status = (await head.get("deployments/mini"))["status"]
            return status["phase"] == "failed" and "no such engine here" in status["message"]

        await eventually(told, "the status says why")


async def test_a_second_head_on_the_same_directory_is_refused(head: HeadProcess) -> None:
    argv = [sys.executable, "-c", START, str(head.data_dir), "127.0.0.1:0", "127.0.0.1:0"]
    second = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert second.returncode == 1
    (line,) = second.stderr.splitlines()
    assert head.process
    assert f"belongs to a running head (pid {head.process.pid})" in line


@pytest.mark.parametrize(
    ("left", "flags"),
    [(["head.json"], []), ([], ["--existing-store"])],
    ids=["a head has served from it", "somebody says so"],
)
def test_a_data_directory_that_lost_its_store_begins_no_other_cluster(
    tmp_path: Path, left: list[str], flags: list[str]
) -> None:
    for name in left:
        (tmp_path / name).write_text("{}")
    argv = [sys.executable, "-c", START, str(tmp_path), "127.0.0.1:0", "127.0.0.1:0", *flags]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert f"{tmp_path} holds no penstock.db" in line
    assert "mounted" in line
    assert [each.name for each in tmp_path.iterdir()] == left


def test_an_empty_file_in_the_stores_place_begins_no_other_cluster(tmp_path: Path) -> None:
    (tmp_path / "head.json").write_text("{}")
    (tmp_path / "penstock.db").touch()
    argv = [sys.executable, "-c", START, str(tmp_path), "127.0.0.1:0", "127.0.0.1:0"]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert "it is empty" in line
    assert "penstock restore" in line


@pytest.mark.parametrize("flag", ["--admin", "--rpc"])
def test_a_taken_port_is_one_clear_line_and_exit_code_1(tmp_path: Path, flag: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        addresses = [address if flag == name else "127.0.0.1:0" for name in ("--admin", "--rpc")]
        argv = [sys.executable, "-c", START, str(tmp_path / "data"), *addresses]
        ended = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"penstock head: error: cannot listen on {address}")
    assert f"another {flag}" in line


async def test_a_restored_backup_changes_nothing_until_it_takes_over(head: HeadProcess) -> None:
    watcher, backup = Watcher(), head.data_dir / "backup.db"
    async with reporting_agent(head) as agent, beside(watcher.follow(head)):
        await head.put("old", replicas=1)
        await eventually(lambda: watcher.routes(1), "the gateway hears of the first")
        head.back_up(backup)
        await head.put("new", replicas=2)
        await eventually(lambda: watcher.routes(3), "the gateway hears of all")
        head.end(signal.SIGKILL)
        head.restore(backup)
        told, ids = len(watcher.snapshots), set(agent.replicas)
        await head.start()
        await eventually(head.is_held, "the head holds still and says so")
        with pytest.raises(AssertionError, match="holds still"):
            await head.put("old", model="x")

        async def shown() -> bool:  # the gateway may have been heard before the agent was
            states = sorted(r["state"] for r in await head.get("replicas"))
            return states == ["foreign", "foreign", "ready"]

        await eventually(shown, "what the backup does not know is shown")
        head.end(signal.SIGKILL)
        await head.start()
        assert await head.is_held()
        assert (set(agent.replicas), agent.stopped, len(watcher.snapshots)) == (ids, [], told)

        head.end(signal.SIGKILL)
        await head.start("--take-over")

        async def in_command() -> bool:
            return not await head.is_held() and await watcher.routes(1)

        await eventually(in_command, "the head has taken over")
        assert "deployment 'new'" in (head.data_dir.parent / "head.log").read_text()
        await head.put("old", model="better")
        await eventually(lambda: _models(agent, "better"), "the agent takes its orders")
        assert len([i for i in agent.replicas if i.startswith("new-")]) == 2


async def test_sigterm_ends_the_head_and_leaves_replicas_alone(head: HeadProcess) -> None:
    async with reporting_agent(head) as agent:
        await head.put("mini")
        await eventually(lambda: head.is_ready("mini"), "the replica is ready")
        assert head.end(signal.SIGTERM) == 0
        assert agent.stopped == []
        assert len(agent.replicas) == 1


async def _models(agent: FakeAgent, model: str) -> bool:
    return any(spec.model == model for spec in agent.specs)


async def _registrations(agent: FakeAgent, count: int) -> bool:
    return agent.registrations >= count
