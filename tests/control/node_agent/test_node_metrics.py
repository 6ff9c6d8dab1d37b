"""What Prometheus finds at a real node agent, whose replicas answer, hang, or know no metrics."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import httpx
import pytest

from penstock.control.metrics.node import REPLICA_LIMIT
from tests.control.node_agent.harness import FakeHead, Node, until
from tests.fakes.ports import free_address
from tests.fakes.promtool import complaints, samples

pytestmark = pytest.mark.processes


async def test_a_node_tells_of_its_replicas_and_one_that_hangs_costs_nobody(
    tmp_path: Path, head: FakeHead
) -> None:
    told = tmp_path / "told"
    told.write_text("# HELP steps_total Steps.\n# TYPE steps_total counter\nsteps_total 5\n")
    address, node = free_address(), Node(tmp_path, head)
    node.start("30", address)
    try:
        await node.start_replica("good", f"metrics={told}")
        await node.start_replica("hung", f"metrics={tmp_path / 'never'}")
        await node.start_replica("old")
        for name in ("good", "hung", "old"):
            await node.ready(name)
        async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
            began = time.monotonic()
            page = (await client.get(f"http://{address}/metrics")).content
            assert time.monotonic() - began < 3 * REPLICA_LIMIT.total_seconds()
            found = samples(page)
            assert complaints(page) == ""
            assert found['penstock_node_replicas{phase="ready"}'] == 3
            assert found['steps_total{deployment="mini",replica="good"}'] == 5
            up = 'penstock_node_replica_metrics_up{deployment="mini",replica="%s"}'
            assert [found[up % name] for name in ("good", "hung", "old")] == [1, 0, 1]

            await node.stop_replica("good")
            await until(lambda: "good" not in head.last())
            later = (await client.get(f"http://{address}/metrics")).text
            assert "good" not in later
            assert "steps_total" not in later
    finally:
        node.signal(signal.SIGINT)
        await node.ended()
