"""Shadows come to the right verdict within what was promised, with real processes; the engines are
simulated. `test_real_shadow_verdicts.py` is the long form."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.shadow_verdicts import (
    assert_equal,
    assert_worse,
    chats,
    judged,
    pids,
    signalled,
)
from tests.e2e.system import System, eventually, running

PROMPTS = [f"What is {number} times 7?" for number in range(1000)]
PACE = {"answer_tokens": 8, "ttft_ms": 20, "tokens_per_second": 200}
CANNED = {"text": "I am sorry, but I cannot help with that now."}


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """A deployment, and candidates: one that is to die, and a provider that says one thing."""
    settings = " ".join(f"{name}={value}" for name, value in PACE.items())
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", settings)
    with running(folder, *options, within=60) as system:
        mortal = {"engine": "simulated", "model": "tiny", "engine_args": PACE}
        system.change(
            "POST", "deployments", {"name": "mortal", **mortal, "first_event_deadline_ms": 500}
        )
        canned = {"engine": "canned", "model": "sorry", "engine_args": CANNED}
        system.change("POST", "deployments", {"name": "sorry", **canned})
        eventually(lambda: len(system.replicas()) == 3, within=30, what="all serve")
        yield system


async def test_a_deployment_beside_itself_is_equal_as_soon_as_was_promised(system: System) -> None:
    spec = {"primary": "sim", "candidate": "sim", "margins": {"guardrails": 0.02}}
    found = await judged(system, "trust", spec, chats("sim", PROMPTS), within=100)
    assert_equal(found, "error", "guardrails")


async def test_a_provider_that_says_the_same_to_everything_is_worse(system: System) -> None:
    spec = {"primary": "sim", "candidate": "sorry", "usd_per_day": 1}
    found = await judged(system, "canned", spec, chats("sim", PROMPTS), within=60)
    assert_worse(found, "refusal")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stuck"])
async def test_a_candidate_that_is_dead_is_worse_by_errors_and_no_client_notices(
    system: System, number: signal.Signals
) -> None:
    spec = {"primary": "sim", "candidate": "mortal"}
    async with signalled(system, "mortal", number):
        found = await judged(system, number.name.lower(), spec, chats("sim", PROMPTS), within=90)
    assert_worse(found, "error")
    eventually(lambda: pids(system, "mortal"), within=30, what="it is back")
