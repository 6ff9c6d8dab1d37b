"""Replicas that leave hand their streams over: they go in seconds, and no client misses a byte."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.resumed_streams import (
    asks,
    differing,
    is_idle,
    reading,
    resumed,
    undisturbed,
)
from tests.e2e.system import System, eventually, running

SECONDS_LONG = 20  # each stream, as it is written


@pytest.fixture
def system(folder: Path) -> Iterator[System]:
    """Two simulated replicas that write 20 tokens a second to each stream."""
    settings = "tokens_per_second=20 per_request=1"
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", settings)
    soon = ("--set", "update.min_ready_ms=500")
    with running(folder, *options, *soon, replicas=2, within=60) as system:
        yield system
        eventually(lambda: is_idle(system), within=20, what="nothing left")


def pids(system: System) -> set[int]:
    return {replica["pid"] for replica in system.replicas() if replica["state"] != "stopped"}


async def test_who_is_too_many_is_gone_long_before_its_longest_stream_ends(system: System) -> None:
    wanted = asks(24, tokens=20 * SECONDS_LONG)
    known = await undisturbed(system.gateway_port, wanted)
    before = pids(system)
    async with reading(system.gateway_port, wanted) as seen:
        began = time.monotonic()
        scaled = await asyncio.to_thread(
            system.change, "POST", "deployments/sim/scale?hand_over=true", {"replicas": 1}
        )
        assert scaled["hand_over"]
        await asyncio.to_thread(
            eventually, lambda: len(pids(system)) == 1, within=12, what="one replica"
        )
        took = time.monotonic() - began
        assert not any(one.ended for one in seen), "a stream ended before its replica did"
    assert took < SECONDS_LONG / 2
    assert pids(system) < before
    assert differing(seen, known) == []
    assert len({one.request_id for one in resumed(system)}) >= len(wanted) // 3, (
        "those of the one that left"
    )


async def test_a_restart_in_a_hurry_takes_all_streams_along(system: System) -> None:
    wanted = asks(24, tokens=20 * SECONDS_LONG)
    known = await undisturbed(system.gateway_port, wanted)
    before = pids(system)
    async with reading(system.gateway_port, wanted) as seen:
        await asyncio.to_thread(system.change, "POST", "deployments/sim/restart?hand_over=true", {})
        await asyncio.to_thread(
            eventually, lambda: not pids(system) & before, within=18, what="none of the old"
        )
    assert differing(seen, known) == []
