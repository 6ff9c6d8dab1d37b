"""Programs that route: switched, killed and broken while clients ask, nobody is failed for it."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e import verbs
from tests.e2e.moved_context import (
    MODEL,
    PROGRAMS,
    Json,
    ask,
    at_rest,
    decided,
    sets,
    switched,
    total,
    up,
)
from tests.e2e.rollouts import Sessions, sessions
from tests.e2e.system import System, eventually

BAD = {
    "loops for ever": "while True: pass",
    "allocates without end": "kept = []\n    while True: kept.append(bytearray(1 << 24))",
    "raises": "raise RuntimeError('a fault of its own')",
    "prints 1 GB": "for _ in range(1 << 10): print('x' * (1 << 20))",
    "opens sockets": "import socket\n    kept = []\n    while True: kept.append(socket.socket())",
    "returns nonsense": "return 42",
}


@pytest.fixture(scope="module")
def three(folder: Path) -> Iterator[System]:
    """Three simulated engines that move KV."""
    settings = {"tokens_per_second": 400, "answer_tokens": 8}
    fields: Json = {"engine": "simulated", "model": "m", "engine_args": settings, "replicas": 3}
    with up(folder, within=60, **fields, roles={"prefill": 1, "decode": 2}) as system:
        yield system


def test_programs_are_switched_under_load_and_nobody_is_failed(three: System) -> None:
    asyncio.run(_switching(three, seconds=10))


@pytest.mark.long
@pytest.mark.timeout(300)
def test_programs_are_switched_every_second_for_a_minute(three: System) -> None:
    asyncio.run(_switching(three, seconds=60))


async def _switching(system: System, *, seconds: int) -> None:
    switched(system, PROGRAMS[0])
    before = decided(system)
    async with sessions(system, MODEL, 8) as talking:
        for name in itertools.islice(itertools.cycle(PROGRAMS), seconds):
            turn = asyncio.sleep(1)  # what is asked for: one a second
            await asyncio.to_thread(
                sets, system, selection_policy="program", program={"name": name}
            )
            await turn
    assert talking.failures == []
    assert talking.answers > 5 * seconds
    assert decided(system) - before > talking.answers / 2
    at_rest(system)


@pytest.mark.parametrize("fault", BAD)
def test_a_program_that_is_bad_costs_nothing_but_itself(three: System, fault: str) -> None:
    text = f"USES = set()\n\n\nasync def route(request, engines, stats):\n    {BAD[fault]}\n"
    failed = total(three, "penstock_gateway_program_asks_total") - decided(three)

    async def under_load() -> Sessions:
        async with sessions(three, MODEL, 4) as talking:
            sets(three, selection_policy="program", program={"file": text})
            await asyncio.to_thread(eventually, broken, within=30, what="a request that it failed")
        return talking

    def broken() -> bool:
        now = total(three, "penstock_gateway_program_asks_total") - decided(three)
        return now > failed

    talking = asyncio.run(under_load())
    assert talking.failures == []
    assert talking.answers


def test_what_each_process_wrote_of_a_request_is_found_by_the_clients_name_for_it(
    three: System,
) -> None:
    text = "USES = set()\n\n\nasync def route(request, engines, stats):\n    raise KeyError(1)\n"
    name, where = "the-clients-own-name", ("--data-dir", str(three.data))
    sets(three, selection_policy="program", program={"file": text})

    def found() -> set[str]:
        ask(three, "Hello", client=name)
        told = verbs.penstock("logs", "--request", name, "--json", *where).splitlines()
        return {json.loads(line)["process"] for line in told}

    both = {"gateway", "program"}
    eventually(lambda: found() >= both, within=30, what="lines of the gateway and the program")
    told = verbs.penstock("logs", "--all", "--tail", "10000", *where).splitlines()
    lines = [line.partition(": ") for line in told]
    times = [json.loads(line)["time"] for _, _, line in lines]
    assert times == sorted(times)
    kinds = {who.split()[0] for who, _, _ in lines}
    assert kinds >= {"head", "gateway", "node", "replica", "program"}
    words = {json.loads(line)["level"] for _, _, line in lines}
    assert words <= {"debug", "info", "warning", "error"}


def test_a_program_that_is_killed_is_missed_by_nobody_and_comes_back(three: System) -> None:
    switched(three, "prefill_decode")

    async def killed() -> Sessions:
        async with sessions(three, MODEL, 4) as talking:
            for process in programs(three):
                process.kill()
            await asyncio.to_thread(again)
        return talking

    def again() -> None:
        before = decided(three)
        eventually(lambda: decided(three) > before, within=30, what="decisions of the next one")

    talking = asyncio.run(killed())
    assert talking.failures == []
    at_rest(three)


def programs(system: System) -> list[psutil.Process]:
    """The processes of its router programs."""
    return system.processes("penstock.control.router")


def test_status_says_what_routes_and_why_not(three: System) -> None:
    switched(three, "data_parallel")
    told = three.admin(f"deployments/{MODEL}")["status"]["program"]
    assert told["name"] == "data_parallel"
    assert [each["unavailable"] for each in told["gateways"]] == [""]
    assert [each["running"] for each in told["nodes"]] == [True]
    sets(three, selection_policy="power_of_two")
    deadline = time.monotonic() + 20
    while programs(three) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not programs(three)
