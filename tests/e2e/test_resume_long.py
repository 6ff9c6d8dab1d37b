"""Two thousand streams at a time over eight replicas that die and stop: all are what they would
have been. `make test-long ONLY=resumes`."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e import resume_scenarios as scenarios
from tests.e2e.adapter_traffic import made
from tests.e2e.fleet import Fleet
from tests.e2e.resumed_streams import (
    Ask,
    asks,
    busiest,
    differing,
    is_idle,
    reading,
    resumed,
    undisturbed,
)
from tests.e2e.system import System, eventually, running

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

REPLICAS = 8
STREAMS = 2000
SLOW = (("tokens_per_second", 2),)  # what one client process can read of so many
ROUNDS = ("KILL", "KILL"), ("STOP", "KILL"), ("KILL", "KILL"), ("KILL", "STOP"), ("KILL", "KILL")


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """Eight simulated replicas."""
    settings = "tokens_per_second=20 per_request=1"
    adapter = f"{scenarios.ADAPTER}=pirate@1={made(folder, 'pirate@1')}"
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", settings)
    more = ("--adapter", adapter, "--max-adapters", "2", "--set", "progress_deadline_ms=2000")
    with running(folder, *options, *more, replicas=REPLICAS, within=120) as system:
        yield system


@pytest.fixture(autouse=True)
def _whole_again(system: System) -> Iterator[None]:
    """Nothing is left of what a test did, and all replicas are back."""
    yield
    system.wait_ready(REPLICAS, within=180)
    eventually(lambda: is_idle(system), within=60, what="nothing left")


async def _strike(system: System, how: str) -> datetime:
    """When it began; a replica that is stopped goes on after five seconds."""
    victim = await asyncio.to_thread(busiest, system)
    at = datetime.now(UTC)
    os.kill(victim["pid"], signal.Signals[f"SIG{how}"])
    if how == "STOP":
        await asyncio.sleep(5)
        os.kill(victim["pid"], signal.SIGCONT)
    return at


async def test_streams_over_ten_strikes_are_what_they_would_have_been(system: System) -> None:
    wanted = asks(STREAMS, adapter=scenarios.ADAPTER, tokens=40, simulate=SLOW)
    known = await undisturbed(system.gateway_port, wanted)
    for strikes in ROUNDS:
        await asyncio.to_thread(system.wait_ready, REPLICAS, within=180)
        async with reading(system.gateway_port, wanted) as seen:
            for how in strikes:
                before = len(resumed(system))
                at = await _strike(system, how)
                await asyncio.sleep(3)
                scenarios.tell(how, system, before, at)
        assert differing(seen, known) == []


async def test_half_of_the_replicas_die_at_once_under_new_requests(system: System) -> None:
    wanted = asks(400, adapter=scenarios.ADAPTER, tokens=100)
    known = await undisturbed(system.gateway_port, wanted)
    before = len(resumed(system))
    async with reading(system.gateway_port, wanted[:300]) as seen:
        for replica in system.replicas()[: REPLICAS // 2]:
            system.kill(replica["pid"])
        at = datetime.now(UTC)
        async with reading(system.gateway_port, wanted[300:]) as newcomers:
            assert newcomers
    assert differing([*seen, *newcomers], known) == []
    scenarios.tell("half of the replicas", system, before, at)


async def test_a_second_death_while_streams_go_on(system: System) -> None:
    await scenarios.second_death(system, 400)


async def test_a_crowd_that_leaves_in_the_pause(system: System) -> None:
    await scenarios.leave(system, 400)


async def test_a_crowd_that_reads_late(system: System) -> None:
    await scenarios.read_late(system, 40)


async def test_a_crowd_without_a_head(system: System, tmp_path: Path) -> None:
    await scenarios.headless(system, 400, Fleet(system, tmp_path, 1).without_a_head())


async def test_a_crowd_that_waits_for_unary_answers(system: System) -> None:
    await scenarios.unary(system, 400)


async def test_a_replica_that_stops_under_a_crowd(system: System) -> None:
    await scenarios.stop(system, 400)


async def test_large_bodies_alone(system: System) -> None:
    wanted = [Ask(number, long=True) for number in range(64)]
    known = await undisturbed(system.gateway_port, wanted)
    async with reading(system.gateway_port, wanted) as seen:
        await _strike(system, "KILL")
    assert differing(seen, known) == []
