"""Clients of a candidate that they keep full wait no longer for what a shadow of all requests of
another deployment asks there."""

from __future__ import annotations

import asyncio
import logging
import math
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.shadow_verdicts import asking, chats
from tests.e2e.system import System, eventually, running

pytestmark = [pytest.mark.long, pytest.mark.alone, pytest.mark.timeout(600)]

PLACES = 4
ROUNDS = 20  # with and without
SECONDS = 3.0  # each
SHADOW = "beside"
_log = logging.getLogger(__name__)


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """A primary, and a candidate that has few places."""
    pace = {"answer_tokens": 20, "tokens_per_second": 100}
    settings = " ".join(f"{name}={value}" for name, value in pace.items())
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", settings)
    with running(folder, *options, within=60) as system:
        spec = {"engine": "simulated", "model": "tiny", "engine_args": pace}
        system.change("POST", "deployments", {"name": "full", **spec, "max_ongoing": PLACES})
        eventually(lambda: len(system.replicas()) == 2, within=30, what="both serve")
        yield system


async def answers(system: System, clients: int) -> list[tuple[float, float]]:
    """For a round, one after the other of each client: whole time and wait, in milliseconds."""
    found: list[tuple[float, float]] = []
    until = time.monotonic() + SECONDS
    (body,) = chats("full", ["What is a place?"])

    async def client(http: httpx.AsyncClient) -> None:
        while (began := time.monotonic()) < until:
            reply = await http.post(f"{system.base_url}/chat/completions", json=body)
            assert reply.status_code == 200
            took = 1000 * (time.monotonic() - began)
            found.append((took, float(reply.headers["x-penstock-queue-ms"])))

    async with httpx.AsyncClient(timeout=30) as http, asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(client(http))
    return found


@pytest.mark.parametrize("clients", [PLACES, PLACES + 2], ids=["full", "with a queue"])
async def test_its_clients_are_answered_as_soon_as_without_a_shadow(
    system: System, clients: int
) -> None:
    spec = {"primary": "sim", "candidate": "full", "share_permille": 1000, "max_concurrent": 32}
    system.change("POST", "shadows", {"name": SHADOW, **spec})
    ratios, waits = [], {"pause": [0.0], "resume": [0.0]}
    try:
        async with asking(system, chats("sim", ["What is a shadow?"])):
            for number in range(ROUNDS):
                took = {}
                for verb in ("pause", "resume") if number % 2 else ("resume", "pause"):
                    await asyncio.to_thread(system.change, "POST", f"shadows/{SHADOW}/{verb}")
                    await asyncio.sleep(0.2)  # what is under way
                    seen = await answers(system, clients)
                    took[verb] = statistics.mean(whole for whole, _ in seen)
                    waits[verb] += [wait for _, wait in seen]
                ratios.append(math.log(took["resume"] / took["pause"]))
        outcomes = system.admin(f"shadows/{SHADOW}/report")["report"]["outcomes"]
    finally:
        system.change("DELETE", f"shadows/{SHADOW}")
    from scipy import stats  # a second and a half for all who collect this

    low, high = stats.t.interval(
        0.95, ROUNDS - 1, statistics.mean(ratios), statistics.stdev(ratios) / math.sqrt(ROUNDS)
    )
    means = {verb: statistics.mean(each) for verb, each in waits.items()}
    told = (clients, PLACES, math.expm1(low), math.expm1(high), means, outcomes)
    _log.warning("%d clients, %d places: longer by %.4f to %.4f of it; waits, ms: %s; %s", *told)
    assert outcomes.get("candidate_busy", 0) + outcomes.get("preempted", 0) > 0
    assert high < 0.05
