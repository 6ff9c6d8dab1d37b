"""Prometheus at a head that runs."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import httpx
import pytest

from tests.control.head_process import HeadProcess
from tests.fakes.control_waiting import eventually
from tests.fakes.promtool import complaints, samples

pytestmark = pytest.mark.processes


async def test_prometheus_finds_a_head_and_no_taken_port_keeps_one_from_starting(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        running = HeadProcess(tmp_path / "data")
        (tmp_path / "data").mkdir()
        await running.start("--head-metrics", address)
        await running.put("mini", engine="simulated", model="m", max_queued=3)

    async def scraped() -> bytes:
        try:
            return (await running.client.get(f"http://{address}/metrics")).content
        except httpx.HTTPError:
            return b""

    try:
        page = await eventually(scraped, "the port is free, and taken up")
        found = samples(page)
        assert found['penstock_head_deployment_replicas_wanted{deployment="mini"}'] == 1
        assert found["penstock_head_store_write_seconds_count"] > 0
        assert complaints(page) == ""
    finally:
        running.end(signal.SIGTERM)
        await running.client.aclose()
