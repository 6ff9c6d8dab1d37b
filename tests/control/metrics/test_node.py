"""What a node tells Prometheus of itself and of its replicas."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta

import pytest

from penstock.control.errors import Unavailable
from penstock.control.metrics import node as node_metrics
from penstock.control.metrics.node import Machine, NodeMetrics
from penstock.control.state.fleet.replica import ReplicaAddress
from penstock.v1 import nodes_pb2
from tests.architecture.metrics_reference import node_rows
from tests.fakes.promtool import complaints, samples

FAMILY = re.compile(r"# HELP (\w+) (.*)\n# TYPE \S+ (\w+)\n")
READY, BACKOFF = nodes_pb2.REPLICA_PHASE_READY, nodes_pb2.REPLICA_PHASE_BACKOFF
POOL = nodes_pb2.WarmPool(target=2, waiting=1, claims=5, cold_starts=3)
STAGES = [nodes_pb2.StartStage(name="claim", ms=40), nodes_pb2.StartStage(name="load", ms=700)]
START = nodes_pb2.ReplicaStart(kind=nodes_pb2.START_KIND_WARM, stages=STAGES)
TEXT = "# HELP vllm:running Sequences.\n# TYPE vllm:running gauge\nvllm:running 4\n"


class Table:
    """Replicas as an agent has them."""

    def __init__(self, *statuses: nodes_pb2.ReplicaStatus) -> None:
        self.held = list(statuses)

    def statuses(self) -> list[nodes_pb2.ReplicaStatus]:
        return self.held


class Scripted:
    """Answers by address; says that there was no answer in time where none is written down."""

    def __init__(self, **texts: str) -> None:
        self.texts = texts
        self.asked: list[str] = []

    async def metrics(self, replica: ReplicaAddress, *, within: timedelta) -> str:
        address = replica.address
        self.asked.append(address)
        if address not in self.texts:
            raise Unavailable(f"{address} says nothing")
        return self.texts[address]


def status(name: str, phase: nodes_pb2.ReplicaPhase = READY) -> nodes_pb2.ReplicaStatus:
    """A replica whose address is its name."""
    return nodes_pb2.ReplicaStatus(
        replica_id=name, deployment="mini", phase=phase, address=name, restarts=2, start=START
    )


def resources() -> nodes_pb2.NodeResources:
    device = nodes_pb2.Device(
        index=1, uuid="GPU-1", name="N", memory_bytes=100, memory_used_bytes=40
    )
    return nodes_pb2.NodeResources(
        cpus=8, memory_bytes=1000, memory_available_bytes=300, devices=[device]
    )


async def page_of(table: Table, source: Scripted) -> bytes:
    """The page, made as the server makes it: beside the loop."""
    machine = Machine(resources, lambda: 12.5)
    metrics = NodeMetrics(table, source, machine, asyncio.get_running_loop(), lambda: POOL)
    return await asyncio.to_thread(metrics.page)


async def test_the_page_tells_of_machine_and_replicas_and_promtool_finds_nothing_wrong() -> None:
    woken = status("b")
    woken.wakes, woken.wake_ms = 3, 1500
    table = Table(status("a"), woken, status("c", BACKOFF))
    source = Scripted(a=TEXT, b=TEXT)
    page = await page_of(table, source)
    found = samples(page)
    gpu = 'gpu="1",name="N",uuid="GPU-1"'
    for name, value in {
        'penstock_node_replicas{phase="ready"}': 2,
        'penstock_node_replicas{phase="backoff"}': 1,
        'penstock_node_replica_restarts_total{deployment="mini",replica="c"}': 2,
        'penstock_node_replica_wakes_total{deployment="mini",replica="b"}': 3,
        'penstock_node_replica_wake_seconds{deployment="mini",replica="b"}': 1.5,
        'penstock_node_replica_metrics_up{deployment="mini",replica="a"}': 1,
        'penstock_node_warm_pool_members{state="wanted"}': 2,
        'penstock_node_warm_pool_members{state="waiting"}': 1,
        'penstock_node_replica_starts_total{kind="warm"}': 5,
        'penstock_node_replica_starts_total{kind="cold"}': 3,
        "penstock_node_replica_start_stage_seconds"
        '{deployment="mini",kind="warm",replica="a",stage="load"}': 0.7,
        "penstock_node_cpus": 8,
        "penstock_node_cpu_idle_seconds_total": 12.5,
        "penstock_node_memory_bytes": 1000,
        "penstock_node_memory_available_bytes": 300,
        f"penstock_node_gpu_memory_bytes{{{gpu}}}": 100,
        f"penstock_node_gpu_memory_used_bytes{{{gpu}}}": 40,
        'vllm:running{deployment="mini",replica="a"}': 4,
        'vllm:running{deployment="mini",replica="b"}': 4,
    }.items():
        assert found[name] == value, name
    assert source.asked == ["a", "b"]  # one that has ended has nothing to say
    assert complaints(page.replace(b"vllm:", b"vllm_")) == ""


async def test_an_agent_tells_what_it_declares_and_nothing_else() -> None:
    page = (await page_of(Table(status("a")), Scripted(a=""))).decode()
    told = set(FAMILY.findall(page))
    assert told == {(row.name, row.help, row.type) for row in node_rows()}


async def test_what_is_wrong_with_one_replica_costs_that_one_alone() -> None:
    table = Table(status("hung"), status("mad"), status("good"), status("old"))
    found = samples(await page_of(table, Scripted(mad="oops\n", good=TEXT, old="")))
    up = {
        name: found[f'penstock_node_replica_metrics_up{{deployment="mini",replica="{name}"}}']
        for name in ("hung", "mad", "good", "old")
    }
    assert up == {"hung": 0, "mad": 0, "good": 1, "old": 1}
    assert [name for name in found if name.startswith("vllm")] == [
        'vllm:running{deployment="mini",replica="good"}'
    ]


async def test_no_replica_speaks_in_the_agents_name() -> None:
    lie = "# TYPE penstock_node_cpus gauge\npenstock_node_cpus 1\n"
    found = samples(await page_of(Table(status("a")), Scripted(a=lie)))
    assert [name for name in found if name.startswith("penstock_node_cpus")] == [
        "penstock_node_cpus"
    ]


async def test_series_of_a_replica_that_is_gone_leave() -> None:
    table, source = Table(status("a")), Scripted(a=TEXT)
    assert b'replica="a"' in await page_of(table, source)
    table.held = []
    assert b'replica="a"' not in await page_of(table, source)


def test_an_agent_that_stops_says_so() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    metrics = NodeMetrics(Table(), Scripted(), Machine(resources, float), loop)
    with pytest.raises(Unavailable, match="stops"):
        metrics.page()


def test_a_replica_has_less_time_than_prometheus_gives() -> None:
    assert timedelta(seconds=10) > node_metrics.REPLICA_LIMIT + node_metrics.PAGE_MARGIN
