"""A request under which an engine died, at one gateway, and its answer at another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

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
    paced = ("--engine-args", "tokens_per_second=20 per_request=1 die_after_tokens=10")
    with (
        running(tmp_path, *options, *paced, replicas=2, within=60) as system,
        fleet_of(system, tmp_path, 2) as fleet,
    ):
        _tell_at_once(fleet)
        yield fleet


def _tell_at_once(fleet: Fleet) -> None:
    """Else the request would go on as a suspect at the other replica, and be quarantined there."""
    spec = fleet.system.admin("deployments/sim")["spec"]
    fleet.system.change("PUT", "deployments/sim", spec | {"resume": "off"})

    def known() -> bool:
        version = fleet.system.admin("version")["snapshot_version"]
        return {g["snapshot_version"] for g in fleet.system.admin("gateways")} == {version}

    eventually(known, within=10, what="no answer goes on")


async def test_an_answer_at_one_gateway_clears_a_request_at_the_other_within_two_seconds(
    fleet: Fleet,
) -> None:
    here, there = fleet.ports
    await _kills_its_engine(here)
    await _shown(fleet, within=5, what="a suspect at both", is_suspect=True)
    await asyncio.to_thread(_mended, fleet)
    assert max(await _two_at_once(there)) > 0.7 * ANSWER, "known there: one after the other"
    await _shown(fleet, within=2, what="none at both", is_suspect=False)
    assert max(await _two_at_once(here)) < 0.3 * ANSWER, "both at once"


async def _kills_its_engine(port: int) -> None:
    async with _client(port) as client:
        reply = await client.post(PATH, json=SUSPECT)
    assert reply.json()["error"]["code"] == "engine_dead", reply.text


def _mended(fleet: Fleet) -> None:
    """The same deployment with an engine that does not die."""
    system = fleet.system
    spec = system.admin("deployments/sim")["spec"]
    del spec["engine_args"]["die_after_tokens"]
    died = {replica["id"] for replica in system.admin("replicas")}
    system.change("PUT", "deployments/sim", spec)

    def others() -> bool:
        there = {replica["id"] for replica in system.admin("replicas")}
        return len(there) == len(system.replicas()) == 2 and not there & died

    eventually(others, within=60, what="replicas of the other engine")


async def _shown(fleet: Fleet, *, within: float, what: str, is_suspect: bool) -> None:
    """Returns when the head has, or has not, the request among its suspects, and each gateway knows
    what the head does."""

    def known() -> bool:
        version = fleet.system.admin("version")["snapshot_version"]
        gateways = fleet.system.admin("gateways")
        listed = bool(fleet.system.admin("quarantine"))
        return listed is is_suspect and {g["snapshot_version"] for g in gateways} == {version}

    await asyncio.to_thread(eventually, known, within=within, what=what)


def _client(port: int) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30)


async def _two_at_once(port: int) -> list[float]:
    """Seconds that two copies of the request waited for a replica; both are answered."""
    async with _client(port) as client:
        replies = await asyncio.gather(*(client.post(PATH, json=SUSPECT) for _ in range(2)))
    assert [reply.status_code for reply in replies] == [200, 200], [r.text for r in replies]
    return [int(reply.headers["x-penstock-queue-ms"]) / 1000 for reply in replies]
