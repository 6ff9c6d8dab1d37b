"""A fleet that is overloaded, killed, or out of money still answers, and says how."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.ladder_traffic import Answer, ask, at_rate, canned, check_told, client_of
from tests.e2e.loads import configure, metric, share
from tests.e2e.system import System, eventually, running

pytestmark = pytest.mark.alone

BUDGET = 1000  # milliseconds
# A wait is estimated before it begins; what it turns out to be may lie over the budget by this.
OVER_BUDGET = 1.5


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """Two simulated replicas of two places, and a text for those that find none."""
    settings = "tokens_per_second=100 answer_tokens=20 max_running=2 per_request=1"
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", settings)
    with running(folder, *options, replicas=2, within=60) as system:
        canned(system, "canned")
        configure(system, max_ongoing=2, degrade=["fallback:canned"])
        yield system


async def test_what_the_fleet_cannot_take_goes_down_the_ladder_and_no_more(system: System) -> None:
    configure(system, max_queued=4, wait_budget_ms=0)
    took = 20 / 100 + 0.01  # seconds of a simulated answer
    async with client_of(system) as client:
        began = time.monotonic()
        answers = await at_rate(client, 100, 4)
        lasted = time.monotonic() - began
    check_told(answers, "canned")
    by = Counter(answer.backend for answer in answers)
    most = 4 * lasted / took  # four places, never idle
    assert 0.7 * most < by["sim"] <= 1.1 * most, (by, most)
    assert {answer.degraded for answer in answers} == {"", "queue_full"}
    told = metric(
        system, "penstock_gateway_degraded_total", deployment="sim", rung="fallback:canned"
    )
    assert told >= by["canned"]


async def test_waits_stay_within_the_budget_and_the_ladder_does_not_flap(system: System) -> None:
    configure(system, max_queued=1000, wait_budget_ms=BUDGET)
    async with client_of(system) as client:
        await at_rate(client, 10, 1)  # the wait is estimated by what was served
        answers = await at_rate(client, 100, 5)
        alone = await ask(client)
    check_told([*answers, alone], "canned")
    waits = [answer.waited_ms for answer in answers if answer.backend == "sim"]
    assert share(waits, 0.99) < BUDGET * OVER_BUDGET, sorted(waits)[-5:]
    assert {answer.degraded for answer in answers} == {"", "wait_exceeded"}
    turns = sum(a.backend != b.backend for a, b in itertools.pairwise(answers))
    fleets = sum(answer.backend == "sim" for answer in answers)
    assert turns < fleets, "each that the fleet takes stands alone among those that it does not"
    assert (alone.backend, alone.degraded) == ("sim", ""), "the load is over"


async def test_a_client_may_want_this_deployment_or_none(system: System) -> None:
    configure(system, max_queued=0, wait_budget_ms=0)
    async with client_of(system) as client:
        client.headers["x-penstock-degrade"] = "never"
        answers = await asyncio.gather(*(ask(client) for _ in range(12)))
    assert {answer.backend for answer in answers if answer.status == 200} == {"sim"}
    refused = [answer for answer in answers if answer.status != 200]
    assert refused
    assert {(answer.status, answer.reason) for answer in refused} == {(429, "queue_full")}


async def test_the_answer_after_all_replicas_are_killed_comes_at_once_and_the_fleet_is_used_again(
    system: System,
) -> None:
    configure(system, max_queued=100, wait_budget_ms=0)
    async with client_of(system) as client:
        for replica in system.replicas():
            if replica["deployment"] == "sim":
                system.kill(replica["pid"])
        answer = await ask(client)
        assert (answer.status, answer.backend) == (200, "canned"), answer
        assert answer.seconds < 1
        back = await asyncio.to_thread(
            eventually,
            lambda: any(r["deployment"] == "sim" for r in system.replicas()) and time.monotonic(),
            within=30,
            what="a replica is back",
        )
        while (answer := await ask(client)).backend != "sim":
            assert answer.status == 200, answer
        assert time.monotonic() - answer.seconds - back < 2


async def test_those_that_wait_when_the_fleet_goes_are_answered_by_the_next_rung(
    system: System,
) -> None:
    configure(system, max_queued=100, wait_budget_ms=0)
    async with client_of(system) as client:
        asked = asyncio.gather(
            *(ask(client, max_tokens=400) for _ in range(12)), return_exceptions=True
        )
        await asyncio.to_thread(
            eventually,
            lambda: metric(system, "penstock_gateway_queued", deployment="sim") >= 8,
            within=10,
            what="eight wait",
        )
        began = time.monotonic()
        for replica in system.replicas():
            if replica["deployment"] == "sim":
                system.kill(replica["pid"])
        ended = await asked
        answers = [each for each in ended if isinstance(each, Answer)]
    degraded = [answer for answer in answers if answer.degraded]
    assert len(degraded) >= 8, ended
    assert all(answer.backend == "canned" for answer in degraded)
    assert time.monotonic() - began < 10
    eventually(lambda: len(system.replicas()) == 3, within=30, what="all are back")


def test_a_budget_holds_to_the_cent_and_what_it_has_no_room_for_moves_on(system: System) -> None:
    price = ("usd_per_million_input=0", "usd_per_million_output=1000000")  # a dollar a token
    canned(system, "dear", *price, budget_usd_per_day=30, degrade=["fallback:canned"])
    with httpx.Client(base_url=system.base_url, trust_env=False, timeout=60) as client:
        said_before = [{"role": "user", "content": "Hello"}]
        # Ten dollars, before anything was learnt of answers.
        body = {"model": "dear", "messages": said_before, "max_tokens": 10}

        def said() -> str:
            reply = client.post("/chat/completions", json=body)
            assert reply.status_code == 200, reply.text
            degraded: str = reply.headers.get("x-penstock-degraded", "")
            return degraded

        answers = list(itertools.takewhile(lambda told: told == "", (said() for _ in range(40))))
        assert 3 <= len(answers) < 40
        assert said() == "budget", "it costs nothing more"
        eventually(
            lambda: system.admin("deployments/dear/spend")["today"]["requests"] == len(answers),
            within=5,
            what="all answers are counted",
        )
        assert 20 < system.admin("deployments/dear/spend")["today"]["usd"] <= 30
        client.headers["x-penstock-degrade"] = "never"
        refused = client.post("/chat/completions", json=body)
        assert refused.status_code == 503
        assert refused.headers["x-penstock-drop-reason"] == "budget"
        assert refused.headers["x-should-retry"] == "false"
