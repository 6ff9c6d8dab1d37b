"""Replicas die, stop and are killed while clients read: they see a pause, and every byte once.

The short form; `make test-long ONLY=resumes` has the long one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.adapter_traffic import made
from tests.e2e.fleet import Fleet
from tests.e2e.loads import configure
from tests.e2e.resumed_streams import (
    Ask,
    Seen,
    asks,
    busiest,
    differing,
    is_idle,
    read,
    reading,
    resumed_ids,
    share,
    undisturbed,
)
from tests.e2e.streams import until
from tests.e2e.system import System, eventually, running

STUCK = 2.0  # seconds without progress, as the deployment has it
log = logging.getLogger(__name__)


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """Three simulated replicas that write 20 tokens a second to each stream."""
    settings = "tokens_per_second=20 per_request=1"
    adapter = f"pirate=pirate@1={made(folder, 'pirate@1')}"
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", settings)
    more = ("--adapter", adapter, "--max-adapters", "2")
    limits = ("--set", f"progress_deadline_ms={STUCK * 1000:.0f}")
    with running(folder, *options, *more, *limits, replicas=3, within=60) as system:
        yield system


@pytest.fixture(autouse=True)
def _whole_again(system: System) -> Iterator[None]:
    """Nothing is left of what a test did, and all replicas are back."""
    yield
    system.wait_ready(3, within=60)
    eventually(lambda: is_idle(system), within=20, what="nothing left")


async def _kill_busiest(system: System) -> float:
    """kill -9, and when."""
    victim = await asyncio.to_thread(busiest, system)
    at = time.monotonic()
    system.kill(victim["pid"])
    return at


def _tell(what: str, seen: list[Seen], resumed: set[str], at: float) -> None:
    """What was measured, for whoever runs it with `--log-cli-level=INFO`."""
    pauses = [one.pause(at) * 1000 for one in seen if one.request_id in resumed]
    figures = (len(pauses), len(seen), share(pauses, 0.5), share(pauses, 0.99))
    log.info("%s: %d of %d streams went on; pause p50 %.0f ms, p99 %.0f ms", what, *figures)


async def test_streams_over_a_kill_are_what_they_would_have_been(system: System) -> None:
    wanted = asks(96, adapter="pirate")
    known = await undisturbed(system.gateway_port, wanted)
    before = len(resumed_ids(system))
    async with reading(system.gateway_port, wanted) as seen:
        at = await _kill_busiest(system)
    assert differing(seen, known) == []
    resumed = Counter(resumed_ids(system)[before:])
    assert len(resumed) > len(seen) // 6, "the killed replica carried some"
    for one in seen:
        if one.ask.metadata:
            assert one.metadata()["resumes"] == resumed[one.request_id]
    _tell("kill", seen, set(resumed), at)


async def test_a_replica_that_stops_loses_its_streams_to_others_and_is_not_heard_again(
    system: System,
) -> None:
    wanted = asks(48, adapter="pirate")
    known = await undisturbed(system.gateway_port, wanted)
    before = len(resumed_ids(system))
    async with reading(system.gateway_port, wanted) as seen:
        victim = await asyncio.to_thread(busiest, system)
        at = time.monotonic()
        os.kill(victim["pid"], signal.SIGSTOP)
        try:
            await until(lambda: len(resumed_ids(system)) > before, within=20, what="a resume")
            await asyncio.sleep(1)
        finally:
            os.kill(victim["pid"], signal.SIGCONT)
    assert differing(seen, known) == []
    _tell("stop", seen, set(resumed_ids(system)[before:]), at)


async def test_the_second_replica_dies_while_it_goes_on(system: System) -> None:
    wanted = asks(36, simulate=(("ttft_ms", 1500),), tokens=40)
    known = await undisturbed(system.gateway_port, wanted)
    before = len(resumed_ids(system))
    async with reading(system.gateway_port, wanted) as seen:
        await _kill_busiest(system)
        await until(lambda: len(system.replicas()) == 2, within=5, what="one to be missed")
        await _kill_busiest(system)
    assert differing(seen, known) == []
    assert len(set(resumed_ids(system)[before:])) > len(seen) // 2


async def test_clients_that_leave_in_the_pause_leave_nothing_behind(system: System) -> None:
    wanted = asks(30, simulate=(("ttft_ms", 2000),), tokens=40)
    known = await undisturbed(system.gateway_port, wanted)
    seen = [Seen(ask) for ask in wanted]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(read(system.gateway_port, one)) for one in seen]
        await until(lambda: all(len(one.arrivals) > 2 for one in seen), within=30, what="streams")
        await _kill_busiest(system)
        await asyncio.sleep(0.5)
        for task in tasks[::2]:
            task.cancel()
    assert all(one.left for one in seen[::2])
    assert differing(seen[1::2], known) == []


async def test_slow_readers_get_every_byte_once_they_read_on(system: System) -> None:
    fast = (("tokens_per_second", 2000),)
    wanted = asks(9, tokens=8000, simulate=fast)
    known = await undisturbed(system.gateway_port, wanted)
    before = len(resumed_ids(system))
    hold = asyncio.Event()
    async with reading(system.gateway_port, wanted, begun=1, window=4096, hold=hold) as seen:
        await _kill_busiest(system)
        await asyncio.sleep(1)
        hold.set()
    assert differing(seen, known) == []
    assert resumed_ids(system)[before:]


async def test_streams_go_on_while_there_is_no_head(system: System, tmp_path: Path) -> None:
    wanted = asks(24)
    known = await undisturbed(system.gateway_port, wanted)
    victim = await asyncio.to_thread(lambda: system.replicas()[0])
    before = len(resumed_ids(system))
    with Fleet(system, tmp_path, 1).without_a_head():
        async with reading(system.gateway_port, wanted) as seen:
            system.kill(victim["pid"])
    assert differing(seen, known) == []
    assert resumed_ids(system)[before:]


async def test_unary_answers_whose_replica_dies_are_made_anew(system: System) -> None:
    wanted = asks(24, stream=False, tokens=40)
    wanted = [Ask(one.number, one.path, stream=False, tokens=40, long=one.long) for one in wanted]
    known = await undisturbed(system.gateway_port, wanted)
    seen = [Seen(ask) for ask in wanted]
    async with asyncio.TaskGroup() as group:
        for one in seen:
            group.create_task(read(system.gateway_port, one))
        await asyncio.sleep(1)
        await _kill_busiest(system)
    assert differing(seen, known) == []


async def test_what_may_not_go_on_is_told_as_ever(system: System) -> None:
    configure(system, resume="off")
    wanted = asks(24)
    known = await undisturbed(system.gateway_port, wanted)
    before = len(resumed_ids(system))
    async with reading(system.gateway_port, wanted) as seen:
        await _kill_busiest(system)
    configure(system, resume="on")
    assert not resumed_ids(system)[before:]
    told = [one for one in seen if b'"code":"upstream_error"' in one.events()[-1]]
    assert told
    assert differing([one for one in seen if one not in told], known) == []


async def test_a_replica_that_says_other_words_is_never_gone_on_at(system: System) -> None:
    configure(system, resume_wait_ms=500)
    spec = system.admin("deployments/sim")["spec"]
    old = {replica["pid"] for replica in system.replicas()}
    wanted = asks(24, tokens=200)
    known = await undisturbed(system.gateway_port, wanted)
    before = len(resumed_ids(system))
    async with reading(system.gateway_port, wanted) as seen:
        spec["engine_args"]["answer_tokens"] = "65"  # it changes other requests' answers
        system.change("PUT", "deployments/sim", spec)
        await asyncio.to_thread(
            eventually,
            lambda: (
                {r["pid"] for r in system.replicas()}
                and not {r["pid"] for r in system.replicas()} & old
            ),
            within=30,
            what="replicas of another configuration, and no other ready",
        )
        for pid in old & {p.pid for p in system.processes("penstock.replica")}:
            system.kill(pid)
    assert not resumed_ids(system)[before:]
    told = [one for one in seen if b'"code":"upstream_error"' in one.events()[-1]]
    assert told, "some were still there"
    assert differing([one for one in seen if one not in told], known) == []
