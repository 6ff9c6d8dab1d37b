"""Replicas die and stop while clients read: they see a pause, and every byte once.

The short form; `make test-long ONLY=resumes` has the long one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import resume_scenarios as scenarios
from tests.e2e.adapter_traffic import made
from tests.e2e.fleet import Fleet
from tests.e2e.loads import configure
from tests.e2e.resumed_streams import (
    Seen,
    asks,
    differing,
    is_idle,
    reading,
    resumed,
    undisturbed,
)
from tests.e2e.system import System, eventually, running


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """Three simulated replicas that write 20 tokens a second to each stream."""
    settings = "tokens_per_second=20 per_request=1"
    adapter = f"{scenarios.ADAPTER}=pirate@1={made(folder, 'pirate@1')}"
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", settings)
    more = ("--adapter", adapter, "--max-adapters", "2", "--set", "progress_deadline_ms=2000")
    with running(folder, *options, *more, replicas=3, within=60) as system:
        yield system


@pytest.fixture(autouse=True)
def _whole_again(system: System) -> Iterator[None]:
    """Nothing is left of what a test did, and all replicas are back."""
    yield
    system.wait_ready(3, within=60)
    eventually(lambda: is_idle(system), within=20, what="nothing left")


async def test_streams_over_a_kill_are_what_they_would_have_been(system: System) -> None:
    await scenarios.kill(system, 96)


async def test_a_replica_that_stops_loses_its_streams_and_is_not_heard_again(
    system: System,
) -> None:
    await scenarios.stop(system, 48)


async def test_the_second_replica_dies_while_it_goes_on(system: System) -> None:
    await scenarios.second_death(system, 36)


async def test_clients_that_leave_in_the_pause_leave_nothing_behind(system: System) -> None:
    await scenarios.leave(system, 30)


async def test_slow_readers_get_every_byte_once_they_read_on(system: System) -> None:
    await scenarios.read_late(system, 9)


async def test_streams_go_on_while_there_is_no_head(system: System, tmp_path: Path) -> None:
    await scenarios.headless(system, 24, Fleet(system, tmp_path, 1).without_a_head())


async def test_unary_answers_whose_replica_dies_are_made_anew(system: System) -> None:
    await scenarios.unary(system, 24)


def _told(seen: list[Seen]) -> list[Seen]:
    """Those whose clients were told that they broke."""
    return [one for one in seen if b'"code":"upstream_error"' in one.raw]


async def test_what_may_not_go_on_is_told_as_ever(system: System) -> None:
    configure(system, resume="off")
    wanted = asks(24)
    known = await undisturbed(system.gateway_port, wanted)
    before = len(resumed(system))
    async with reading(system.gateway_port, wanted) as seen:
        await scenarios.kill_busiest(system)
    configure(system, resume="on")
    assert not resumed(system)[before:]
    assert (told := _told(seen))
    assert differing([one for one in seen if one not in told], known) == []


async def test_a_replica_that_says_other_words_is_never_gone_on_at(system: System) -> None:
    configure(system, resume_wait_ms=500)
    spec = system.admin("deployments/sim")["spec"]
    old = {replica["pid"] for replica in system.replicas()}
    wanted = asks(24, tokens=600)
    known = await undisturbed(system.gateway_port, wanted)
    before = len(resumed(system))

    def is_another_ready() -> bool:
        return any(replica["pid"] not in old for replica in system.replicas())

    async with reading(system.gateway_port, wanted) as seen:
        spec["engine_args"]["answer_tokens"] = "65"  # of requests that say no limit
        system.change("PUT", "deployments/sim", spec)
        await asyncio.to_thread(eventually, is_another_ready, within=25, what="another one")
        for process in system.processes("penstock.replica"):
            if process.pid in old:
                process.kill()
    assert not resumed(system)[before:]
    assert (told := _told(seen)), "some were still there"
    assert differing([one for one in seen if one not in told], known) == []
