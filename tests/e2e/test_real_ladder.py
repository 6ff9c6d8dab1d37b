"""Real vLLM, overloaded: what it has no room for is answered by the next rung, and says so."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any

import pytest

from tests.e2e.ladder_traffic import ask, at_rate, canned, check_told, client_of
from tests.e2e.loads import share
from tests.e2e.system import System, eventually

pytestmark = [pytest.mark.vllm, pytest.mark.alone]

MODEL = "penstock-mini"
BUDGET = 1000  # milliseconds
# Of some dozens of waits the first show by how much they go beyond estimates: these may do so.
OVER_BUDGET = 1.5
_GREEDY: dict[str, Any] = {"model": MODEL, "max_tokens": 60, "ignore_eos": True}


@pytest.fixture(scope="module", autouse=True)
def _ladder(real: System) -> None:
    canned(real, "canned")
    settings = {"max_ongoing": 2, "max_queued": 200, "wait_budget_ms": BUDGET}
    real.change(
        "PATCH", f"deployments/{MODEL}/settings", {**settings, "degrade": ["fallback:canned"]}
    )


async def test_a_hundred_a_second_are_all_answered_and_nobody_waits_beyond_the_budget(
    real: System,
) -> None:
    async with client_of(real) as client:
        await at_rate(client, 2, 2, **_GREEDY)  # the wait is estimated by what was served
        answers = await at_rate(client, 100, 5, **_GREEDY)
    check_told(answers, "canned")
    waits = [answer.waited_ms for answer in answers if answer.backend == MODEL]
    assert 0 < len(waits) < len(answers)
    assert {answer.degraded for answer in answers} == {"", "wait_exceeded"}
    assert share(waits, 0.99) < BUDGET * OVER_BUDGET, sorted(waits)[-5:]
    turns = sum(a.backend != b.backend for a, b in itertools.pairwise(answers))
    assert turns < len(waits), "each that the fleet takes stands alone"


async def test_the_answer_after_its_only_replica_is_killed_comes_at_once(real: System) -> None:
    async with client_of(real) as client:
        (pid,) = (r["pid"] for r in real.replicas() if r["deployment"] == MODEL)
        real.kill(pid)
        answer = await ask(client, **_GREEDY)
        assert (answer.status, answer.backend) == (200, "canned"), answer
        assert answer.seconds < 1
        await asyncio.to_thread(
            eventually,
            lambda: any(
                r["pid"] not in (0, pid) for r in real.replicas() if r["deployment"] == MODEL
            ),
            within=120,
            what="its successor is ready",
        )
        back = time.monotonic()
        while (answer := await ask(client, **_GREEDY)).backend != MODEL:
            assert answer.status == 200, answer
        assert time.monotonic() - answer.seconds - back < 2
