"""A request under which a replica was lost, at one gateway, and its answer at another."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.fleet import Fleet, fleet_of
from tests.e2e.system import eventually, running

PATH = "/v1/chat/completions"
ANSWER = 1.0  # seconds that the request takes: 20 tokens at 20 a second
SUSPECT = {
    "model": "sim",
    "messages": [{"role": "user", "content": "the same each time"}],
    "max_tokens": 20,
}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Two gateways before two simulated replicas."""
    options = ("--engine", "simulated", "--name", "sim")
    paced = ("--engine-args", "tokens_per_second=20 per_request=1")
    with (
        running(tmp_path, *options, *paced, replicas=2, within=60) as system,
        fleet_of(system, tmp_path, 2) as fleet,
    ):
        yield fleet


async def test_an_answer_at_one_gateway_clears_a_request_at_the_other_within_two_seconds(
    fleet: Fleet,
) -> None:
    here, there = fleet.ports
    await _loses_its_replica(fleet, here)
    await asyncio.to_thread(eventually, lambda: _known(fleet), within=2, what="a suspect")
    assert max(await _two_at_once(there)) > 0.7 * ANSWER, "one after the other, as it is known"
    answered = time.monotonic()
    await asyncio.to_thread(
        eventually, lambda: not _suspects(fleet) and _known(fleet), within=2, what="none"
    )
    assert time.monotonic() - answered < 2
    assert max(await _two_at_once(here)) < 0.3 * ANSWER, "both at once"


def _client(port: int) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30)


async def _two_at_once(port: int) -> list[float]:
    """Seconds that two copies of the request waited for a replica; both are answered."""
    async with _client(port) as client:
        replies = await asyncio.gather(*(client.post(PATH, json=SUSPECT) for _ in range(2)))
    assert [reply.status_code for reply in replies] == [200, 200], [r.text for r in replies]
    return [int(reply.headers["x-penstock-queue-ms"]) / 1000 for reply in replies]


def _suspects(fleet: Fleet) -> list[Any]:
    return list(fleet.system.admin("quarantine"))


def _known(fleet: Fleet) -> bool:
    """Whether each gateway has what the head knows."""
    version = fleet.system.admin("version")["snapshot_version"]
    return all(g["snapshot_version"] == version for g in fleet.system.admin("gateways"))


async def _loses_its_replica(fleet: Fleet, port: int) -> None:
    """The request, streamed, has its first token when its replica is killed."""
    pids = {r["id"]: r["pid"] for r in fleet.system.replicas()}
    async with _client(port) as client, client.stream("POST", PATH, json=SUSPECT) as reply:
        fleet.system.kill(pids[reply.headers["x-penstock-replica"]])
        with suppress(httpx.HTTPError):
            await reply.aread()
