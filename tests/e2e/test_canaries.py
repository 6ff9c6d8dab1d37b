"""Canaries judge themselves: what fails goes back by itself and hurts nobody before its first
event, what is good gets everybody."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.adapter_traffic import made, register
from tests.e2e.canary_traffic import (
    Clients,
    canary,
    clients,
    comes,
    ended,
    is_ready,
    provider,
    sometimes,
    started,
)
from tests.e2e.fleet import Fleet, fleet_of
from tests.e2e.rollouts import revisions, rolled_out
from tests.e2e.system import System, eventually, running
from tests.fakes.provider_server import ProviderServer

CHAT = "chat"
QUARTER: dict[str, Any] = {"steps": [{"permille": 250, "min_sessions": 20, "min_seconds": 0}]}
# Two cores serve all: how long an answer takes says little here.
_WIDE = {"margin": 0.5}
WIDE: dict[str, Any] = {"ttft": _WIDE, "between_tokens": _WIDE, "total": _WIDE}


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """Two simulated replicas whose answers end by themselves, with room for adapters."""
    settings = "tokens_per_second=100 ttft_ms=20 answer_tokens=8"
    options = ("--engine", "simulated", "--name", CHAT, "--max-adapters", "4")
    with running(folder, *options, "--engine-args", settings, replicas=2, within=60) as system:
        yield system


@pytest.fixture(autouse=True)
def _left_as_found(system: System) -> Iterator[None]:
    """No canary has anything when the next test begins."""
    yield
    for each in system.admin("canaries"):
        if each["state"] in ("running", "held", "paused"):
            system.change("POST", f"canaries/{each['name']}/abort")


@pytest.mark.parametrize(
    ("how", "share", "hurt"), [("before", 1.0, 0), ("refuse", 1.0, 0), ("after", 0.2, 20)]
)
async def test_a_candidate_that_fails_goes_back_by_itself(
    system: System, how: str, share: float, hurt: int
) -> None:
    name = f"fails-{how}"
    with ProviderServer(sometimes(share, how)) as server:
        provider(system, name, server.url)
        started(system, name, target=CHAT, candidate=name, **QUARTER)
        async with clients(system.gateway_port, CHAT) as seen:
            told = await ended(system, name)
        system.change("DELETE", f"deployments/{name}")
    assert told["state"] == "rolled_back", told
    assert seen.hurt <= hurt, seen.outcomes
    assert 2 <= told["arms"]["candidate"]["bad_sessions"] <= 20, told
    assert told["arms"]["stable"]["bad_sessions"] == 0
    assert "errors" in told["why"]


async def test_a_client_that_sends_one_failing_request_again_and_again_moves_nothing(
    system: System,
) -> None:
    name = "retried"
    with ProviderServer(sometimes(1.0, "before")) as server:
        provider(system, name, server.url)
        whole = {"permille": 999, "min_sessions": 50, "min_seconds": 0}
        started(system, name, target=CHAT, candidate=name, steps=[whole])
        await comes(system, name, permille=999)
        alone = Clients(CHAT)
        base_url = f"{system.base_url}"
        async with httpx.AsyncClient(base_url=base_url, trust_env=False, timeout=60) as client:
            for _ in range(100):
                await alone.ask(client, "The one and only question")
        told = await asyncio.to_thread(
            eventually, lambda: _counted(system, name), within=20, what="counts"
        )
        system.change("POST", f"canaries/{name}/abort")
        system.change("DELETE", f"deployments/{name}")
    assert alone.hurt == 0
    assert told["state"] in ("running", "held")
    assert told["arms"]["candidate"]["bad_sessions"] == 1
    assert told["arms"]["candidate"]["saved"] == 100


def _counted(system: System, name: str) -> dict[str, Any] | None:
    """The canary once all hundred are counted."""
    told = canary(system, name)
    return told if told["arms"]["candidate"]["requests"] >= 100 else None


async def test_a_good_candidate_gets_everybody_though_the_head_is_killed_and_can_be_undone(
    system: System,
) -> None:
    settings = {"tokens_per_second": "100", "ttft_ms": "20", "answer_tokens": "7"}
    spec = {"name": "next", "engine": "simulated", "model": "m", "engine_args": settings}
    system.change("POST", "deployments", {**spec, "replicas": 2})
    is_ready(system, "next", 2)
    steps = [{"permille": each, "min_sessions": 50, "min_seconds": 0} for each in (250, 500, 1000)]
    started(system, "good", target=CHAT, candidate="next", steps=steps, guards=WIDE)
    async with clients(system.gateway_port, CHAT, per_second=80) as seen:
        await comes(system, "good", step=2)
        system.kill(system.pid_of("head"))
        told = await ended(system, "good", within=100)
    assert told["state"] == "promoted", told
    assert [each["permille"] for each in told["passed"]] == [250, 500, 1000]
    assert seen.hurt == 0, seen.outcomes
    now = revisions(system, CHAT)[0]
    assert now["by"] == "canary good"
    assert system.admin(f"deployments/{CHAT}")["spec"]["engine_args"] == settings
    evidence = system.admin(f"deployments/{CHAT}/revisions/{now['number']}/evidence")
    assert [(each["kind"], each["passed"]) for each in evidence] == [("canary", True)]
    system.change("POST", f"deployments/{CHAT}/rollback")
    assert system.admin(f"deployments/{CHAT}")["spec"]["engine_args"]["answer_tokens"] == "8"
    await rolled_out(system, CHAT, within=60)  # while it is, no canary of it can be started


async def test_an_adapter_version_is_held_while_it_cannot_be_loaded_else_its_alias_moves(
    system: System, folder: Path
) -> None:
    args = dict(system.admin(f"deployments/{CHAT}")["spec"]["engine_args"])
    args |= {"answer_tokens": "8", "fail_adapter_loads": "a@2"}
    spec = {"name": "lora", "engine": "simulated", "model": "m", "max_adapters": 4}
    system.change("POST", "deployments", {**spec, "engine_args": args})
    is_ready(system, "lora")
    for each in ("a@1", "a@2", "a@3"):
        register(system, "lora", each, made(folder, each))
    system.change("PUT", "aliases/lora/a", {"target": "a@1"})
    started(system, "voice", target="lora:a", candidate="a@2", **QUARTER)
    async with clients(system.gateway_port, "lora:a", per_second=80) as seen:
        told = await comes(system, "voice", state="held")
        system.change("POST", "canaries/voice/abort")
        started(system, "voice", target="lora:a", candidate="a@3", guards=WIDE, **QUARTER)
        assert (await ended(system, "voice"))["state"] == "promoted"
    assert "want 1 ready replicas of a@2, there are 0" in told["why"]
    assert told["arms"]["candidate"]["requests"] == 0
    assert seen.hurt == 0, seen.outcomes
    assert system.admin("aliases/lora/a")["target"] == "a@3"
    assert system.admin("aliases/lora/a")["moved_by"] == "canary voice"
    system.change("POST", "aliases/lora/a/undo")
    assert system.admin("aliases/lora/a")["target"] == "a@1"


async def test_a_new_revision_serves_a_share_first_and_goes_where_it_fails(system: System) -> None:
    spec = {"name": "judged", "engine": "simulated", "model": "m", "replicas": 2}
    args = {"tokens_per_second": "100", "answer_tokens": "8"}
    system.change(
        "POST", "deployments", {**spec, "engine_args": args, "update": {"canary": "gate"}}
    )
    is_ready(system, "judged", 2)
    await rolled_out(system, "judged", within=40)
    started(system, "gate", target="judged", **QUARTER)
    async with clients(system.gateway_port, "judged") as seen:
        known = system.admin("deployments/judged")["spec"]
        args = {**args, "refuse_share": "1"}
        system.change("PUT", "deployments/judged", {**known, "engine_args": args})
        told = await ended(system, "gate")
    assert told["state"] == "rolled_back", told
    assert told["candidate_arm"] == "revision 2"
    assert seen.hurt == 0, seen.outcomes
    failed = next(each for each in revisions(system, "judged") if each["number"] == 2)
    assert failed["state"] == "failed"
    assert "canary gate rolled back" in failed["cause"]


@pytest.fixture(scope="module")
def fleet(system: System, folder: Path) -> Iterator[Fleet]:
    """One more gateway."""
    with fleet_of(system, folder, 2) as fleet:
        yield fleet


async def test_a_gateway_of_which_nothing_is_heard_holds_it(fleet: Fleet) -> None:
    system, (first, _) = fleet.system, fleet.ports
    with ProviderServer(sometimes(0.0, "before")) as server:
        provider(system, "quiet", server.url)
        asleep = {"margin": 1.0}
        guards = {"ttft": asleep, "between_tokens": asleep, "total": asleep}
        started(system, "quiet", target=CHAT, candidate="quiet", guards=guards, **QUARTER)
        os.kill(fleet.others[0].pid, signal.SIGSTOP)
        async with clients(first, CHAT):
            told = await comes(system, "quiet", state="held")
            assert told["silent"], told
            os.kill(fleet.others[0].pid, signal.SIGCONT)
            told = await comes(system, "quiet", silent=[])
        if told["state"] not in ("promoted",):
            system.change("POST", "canaries/quiet/abort")
