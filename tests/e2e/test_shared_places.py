"""Several gateways before one replica: they share its places without a word to each other."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.fleet import LOOK, Fleet, ask_at_once, client_at, fleet_of, flood, for_seconds
from tests.e2e.loads import ask_once, configure, metric
from tests.e2e.system import System, eventually, running
from tests.fakes.ports import free_address
from tests.fakes.waiting import until

pytestmark = pytest.mark.alone

PLACES = 4
NO_KEY = "none"
# Looks at which a count stands until every gateway was told of it: a report may be 20 ms late.
TOLD = 10
BRIEF = {"max_tokens": 1}
TENTH = {"simulate": {"tokens_per_second": 100}, "max_tokens": 10}  # of a second


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """One simulated replica with room for many more calls than gateways may send it."""
    settings = "tokens_per_second=0 answer_tokens=8 max_running=512 per_request=1"
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", settings)
    with running(folder, *options, "--node-metrics", free_address(), within=60) as system:
        yield system


@pytest.fixture(scope="module")
def fleet(system: System, folder: Path) -> Iterator[Fleet]:
    """Three gateways before it."""
    configure(system, max_ongoing=PLACES, max_queued=100)
    with fleet_of(system, folder, 3) as fleet:
        yield fleet


def of_replica(system: System, figure: str) -> int:
    """A figure of the replica at this moment, as its machine's page tells it."""
    [address] = [
        after for before, after in itertools.pairwise(system.options) if before == "--node-metrics"
    ]
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as reply:
        lines = reply.read().decode().splitlines()
    [line] = [x for x in lines if x.startswith(f"penstock_replica_{figure}{{")]
    return int(float(line.rsplit(" ", 1)[1]))


@contextmanager
def watched(system: System) -> Iterator[Counter[int]]:
    """How many calls the replica was seen to run at once, and how often, up to the end."""
    seen: Counter[int] = Counter()
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOK):
            seen[of_replica(system, "sequences_running")] += 1

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield seen
    finally:
        over.set()
        looking.join()


async def they_know_of_each_other(fleet: Fleet, ports: list[int]) -> None:
    """These gateways had calls lately, no others had, and all of them were told so."""
    await ask_at_once(ports, NO_KEY, 1, **BRIEF)
    await asyncio.to_thread(
        eventually,
        lambda: of_replica(fleet.system, "gateways") == len(ports),
        within=15,
        what=f"a replica that knows of {len(ports)} gateways",
    )
    await ask_at_once(ports, NO_KEY, 1, **BRIEF)


@pytest.mark.parametrize("gateways", [2, 3])
async def test_a_flood_through_several_gateways_keeps_to_the_places_and_starves_none(
    fleet: Fleet, gateways: int
) -> None:
    ports = fleet.ports[:gateways]
    await they_know_of_each_other(fleet, ports)
    share = PLACES // gateways
    with watched(fleet.system) as seen:
        began = time.monotonic()
        loads = await flood(ports, NO_KEY, for_seconds(4), clients=8, **TENTH)
        lasted = time.monotonic() - began
    assert max(seen) <= PLACES + (gateways - 1) * share, sorted(seen.items())
    served = [len(load.served) for load in loads]
    assert sum(seen.values()) > 10 * lasted, "too few looks to say anything"
    assert not any(load.refused for load in loads)
    assert min(served) > 0.75 * max(served), served
    assert min(served) > 0.5 * share * lasted / 0.1, "half of what its own share brings"


async def test_a_gateway_does_not_wait_for_its_first_call_while_others_have_the_places(
    fleet: Fleet,
) -> None:
    first, *_, last = fleet.ports
    slow = {"simulate": {"tokens_per_second": 10}, "max_tokens": 10}
    async with asyncio.TaskGroup() as group, client_at(last, NO_KEY) as client:
        group.create_task(ask_at_once([first], NO_KEY, 2 * PLACES, **slow))
        await until(lambda: queued(fleet.system), "calls that wait at the first")
        answer = await ask_once(client, "brief", max_tokens=1)
        assert answer.status == 200
        assert answer.waited_ms < 100, "a call takes a second"
        assert queued(fleet.system)


async def test_gateways_that_come_one_after_the_other_add_no_more_than_a_first_call_each(
    fleet: Fleet,
) -> None:
    await they_know_of_each_other(fleet, fleet.ports[:1])
    slow = {"simulate": {"tokens_per_second": 10}, "max_tokens": 30}
    with watched(fleet.system) as seen:

        def stand(calls: int) -> Callable[[], bool]:
            return lambda: sum(looks for n, looks in [*seen.items()] if n >= calls) >= TOLD

        async with asyncio.TaskGroup() as group:
            for n, port in enumerate(fleet.ports):
                group.create_task(ask_at_once([port], NO_KEY, PLACES, **slow))
                await until(stand(PLACES + n), f"{PLACES + n} calls")
    assert max(seen) == PLACES + len(fleet.ports) - 1, sorted(seen.items())


def queued(system: System) -> float:
    """How many requests wait in the head's own gateway."""
    return metric(system, "penstock_gateway_queued", deployment="sim")
