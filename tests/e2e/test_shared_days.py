"""Two gateways of one head hold limits of a day together, of tenants and of deployments: what they
use beyond one is what either lets in before it is told of the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.fleet import Fleet, ask_at_once, fleet_of, flood, for_seconds, is_refused
from tests.e2e.loads import Load, configure
from tests.e2e.system import System, eventually, running

pytestmark = pytest.mark.alone

GATEWAYS = 2
# A gateway reports each second, the head adds up four times a second; the rest is the machine's.
TOLD_AFTER = 1.25 + 0.75  # seconds
TOKENS = 10  # of an answer, which takes a tenth of a second
TENTH: dict[str, Any] = {"simulate": {"tokens_per_second": 10 * TOKENS}, "max_tokens": TOKENS}
CLIENTS = 2  # of each gateway, which lets in twenty a second at most
# So many last for three seconds and more: twice what one gateway lets in before it is told.
ANSWERS = 120
USD_PER_TOKEN = 1  # of an answer


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """One simulated replica with room for all that these tests send, whose answers cost money."""
    settings = f"tokens_per_second=0 answer_tokens={TOKENS} max_running=512 per_request=1"
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", settings)
    with running(folder, *options, within=60) as system:
        configure(system, usd_per_million_output=USD_PER_TOKEN * 1_000_000)
        yield system


@pytest.fixture(scope="module")
def fleet(system: System, folder: Path) -> Iterator[Fleet]:
    """Two gateways before it, which have learnt what an answer takes."""
    with fleet_of(system, folder, GATEWAYS) as fleet:
        free = fleet.new_key()
        asyncio.run(flood(fleet.ports, free, for_seconds(1), clients=CLIENTS, **TENTH))
        yield fleet


def has_had_all(load: Load) -> bool:
    """Whether any request was told that the day has nothing left."""
    return any(answer.reason == "quota" for answer in load.refused)


def used(fleet: Fleet, key: str, answers: int) -> dict[str, float]:
    """What the key's tenant has used, once all of its answers are added up."""
    url = f"http://127.0.0.1:{fleet.ports[0]}/v1/usage"
    found: dict[str, Any] = {}

    def is_whole() -> bool:
        reply = httpx.get(url, headers={"authorization": f"Bearer {key}"}, trust_env=False)
        found.update(reply.json()["tenant"]["usage"])
        return int(found["num_model_requests"]) == answers

    eventually(is_whole, within=10, what=f"{answers} answers that are counted")
    return {
        "tokens_per_day": found["input_tokens"] + found["output_tokens"],
        "usd_per_day": found["cost_usd"],
    }


def most_at_once(load: Load) -> int:
    """How many of its answers were let in, at most, before the other gateway was told of any; each
    was at a moment between its request's beginning and its end."""
    spans = [(answer.at, answer.at + answer.seconds) for answer in load.served]
    return max(
        sum(begin <= since + TOLD_AFTER and end >= since for begin, end in spans)
        for _, since in spans
    )


@pytest.mark.parametrize("limit", ["tokens_per_day", "usd_per_day"])
async def test_two_gateways_go_beyond_a_limit_by_what_one_lets_in_before_it_is_told(
    fleet: Fleet, limit: str
) -> None:
    free = await asyncio.to_thread(fleet.new_key)
    await ask_at_once(fleet.ports[:1], free, 1, **TENTH)
    an_answer = (await asyncio.to_thread(used, fleet, free, 1))[limit]
    most = ANSWERS * an_answer
    key = await asyncio.to_thread(fleet.new_key, **{limit: most})
    loads = await flood(fleet.ports, key, has_had_all, clients=CLIENTS, **TENTH)
    served = [len(load.served) for load in loads]
    total = (await asyncio.to_thread(used, fleet, key, sum(served)))[limit]
    beyond = max(most_at_once(load) for load in loads)
    assert beyond < 0.75 * ANSWERS, "who is never told would let in as many again"
    # Each is refused where not even one more is left.
    assert most - GATEWAYS * an_answer < total <= most + beyond * an_answer, (served, beyond)
    again = await ask_at_once(fleet.ports, key, 3, **TENTH)
    assert not any(load.served for load in again), "both were told"


async def test_of_many_requests_at_the_same_moment_each_gateway_lets_in_what_one_may(
    fleet: Fleet,
) -> None:
    key = await asyncio.to_thread(fleet.new_key, usd_per_day=1.5 * TOKENS * USD_PER_TOKEN)
    loads = await ask_at_once(fleet.ports, key, 8, **TENTH)
    served = [len(load.served) for load in loads]
    assert max(served) == 1, served
    assert {a.reason for load in loads for a in load.refused} <= {"rate_limited", "quota"}
    assert (await asyncio.to_thread(used, fleet, key, sum(served)))["usd_per_day"] == TOKENS * sum(
        served
    )


async def test_a_deployments_budget_is_held_in_the_same_way(fleet: Fleet) -> None:
    free = await asyncio.to_thread(fleet.new_key)
    await ask_at_once(fleet.ports, free, 1, **TENTH)
    await asyncio.to_thread(used, fleet, free, GATEWAYS)  # so are all that were answered before
    spent = fleet.system.admin("deployments/sim/spend")["today"]["usd"]
    try:
        configure(fleet.system, budget_usd_per_day=USD_PER_TOKEN)
        await flood(fleet.ports, free, is_refused, **TENTH)
        configure(fleet.system, budget_usd_per_day=spent + 1.5 * TOKENS * USD_PER_TOKEN)
        loads = await flood(fleet.ports, free, for_seconds(2), **TENTH)
    finally:
        configure(fleet.system, budget_usd_per_day=0)
    served = [len(load.served) for load in loads]
    assert max(served) == 1, served
    assert {a.reason for load in loads for a in load.refused} == {"budget"}
