"""Panels about vLLM itself, where a real engine serves."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from deploy.monitoring.boards import BOARDS
from tests.e2e.prometheus import watching
from tests.e2e.system import running
from tests.fakes.ports import free_ports
from tests.monitoring.shipped import asked_of_all

pytestmark = [pytest.mark.vllm, pytest.mark.long, pytest.mark.timeout(600)]

CHAT = {"model": "penstock-mini", "messages": [{"role": "user", "content": "What is a gateway?"}]}


def test_each_query_about_vllm_finds_data(folder: Path) -> None:
    queries = {each for board in BOARDS for each in asked_of_all(board) if "vllm:" in each}
    head, node = (f"127.0.0.1:{port}" for port in free_ports(2))
    with running(folder, "--head-metrics", head, "--node-metrics", node, within=300) as system:
        admin = f"http://127.0.0.1:{system.admin_port}"
        with watching(folder, admin, system.data) as scraping:
            for _ in range(5):
                reply = httpx.post(f"{system.base_url}/chat/completions", json=CHAT, timeout=60)
                assert reply.status_code == 200, reply.text
            scraping.find_data(queries)
