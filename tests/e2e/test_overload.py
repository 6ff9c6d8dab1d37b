"""More requests than a deployment has places for: each is answered, or told truly when to come."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.loads import (
    Answer,
    Load,
    admin,
    after,
    ask_once,
    configure,
    metric,
    obeying,
    sdk,
    share,
)
from tests.e2e.system import PENSTOCK, System, eventually, running
from tests.fakes.waiting import until

pytestmark = pytest.mark.alone

POLICIES = ("round_robin", "least_loaded", "power_of_two", "prefix_aware", "session")
TOKENS = 10  # half a second
BUDGET = 1000  # milliseconds: two thirds of what a full queue takes
ESTIMATE_ERROR = "penstock_gateway_wait_estimate_error_ratio"


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """Two simulated replicas that take two calls each, and may be killed."""
    settings = "tokens_per_second=20 answer_tokens=40 max_running=4 per_request=1"
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", settings)
    limits = ("--set", "max_ongoing=2", "--set", "max_queued=2")
    with running(folder, *options, *limits, replicas=2, within=60) as system:
        yield system


def scale(system: System, replicas: int) -> None:
    """So many replicas, ready."""
    subprocess.run(
        [PENSTOCK, "scale", "sim", str(replicas), "--admin", f"127.0.0.1:{system.admin_port}",
         "--data-dir", system.data], check=True, capture_output=True, timeout=20,
    )  # fmt: skip
    eventually(
        lambda: len(system.admin("replicas")) == replicas == len(system.replicas()),
        within=30,
        what=f"{replicas} replicas",
    )


async def test_two_run_two_wait_and_two_are_refused_at_once(system: System) -> None:
    await asyncio.to_thread(scale, system, 1)
    configure(system, max_ongoing=2, max_queued=2)
    async with sdk(system) as client:
        asked = [ask_once(client, f"question {i}") for i in range(6)]
        answers = sorted(await asyncio.gather(*asked), key=lambda a: a.seconds)
    refused, ran, waited = answers[:2], answers[2:4], answers[4:]
    assert [a.status for a in refused] == [429, 429]
    assert all(a.seconds < 0.5 and a.reason == "queue_full" for a in refused)
    assert all(1 <= int(a.headers["retry-after"]) <= 60 for a in refused)
    assert all(0 < a.retry_seconds <= int(a.headers["retry-after"]) for a in refused)
    assert [a.status for a in ran + waited] == [200] * 4
    assert all(a.waited_ms < 500 for a in ran)
    assert all(1500 < a.waited_ms < 2500 and 3.5 < a.seconds < 4.5 for a in waited)


async def test_five_times_as_many_clients_as_places_are_served_in_turn(system: System) -> None:
    await asyncio.to_thread(scale, system, 2)
    configure(system, max_ongoing=2, max_queued=12, wait_budget_ms=BUDGET)
    seconds = 40
    load = await _closed_loop(system, clients=5 * (2 * 2 + 12), seconds=seconds)
    assert not load.lost, load.lost[:3]
    assert {a.reason for a in load.refused} == {"queue_full", "wait_exceeded"}
    assert all(1 <= a.retry_seconds <= 60 for a in load.refused)
    assert share(load.waits(), 0.99) <= BUDGET
    again = [a for a in load.answers if a.again]
    came_in = sum(a.status == 200 for a in again) / len(again)
    assert came_in >= 0.9, f"{came_in:.0%} of {len(again)} who came when they were told to"
    assert len(load.served) > 0.9 * seconds * 8, "places stood empty"
    errors = [abs(a.estimated_ms / a.waited_ms - 1) for a in load.served if a.waited_ms > 100]
    assert share(errors[100:], 0.5) < 0.3
    counted = metric(system, ESTIMATE_ERROR + "_count", deployment="sim")
    assert counted >= len(errors)


async def _closed_loop(system: System, *, clients: int, seconds: float) -> Load:
    """Half of them obey `retry-after-ms`, as the SDKs do, the others `Retry-After`."""
    load = Load()
    over = after(seconds)
    headers = (lambda a: a.retry_seconds, lambda a: a.retry_whole_seconds)
    async with sdk(system) as client, asyncio.TaskGroup() as group:
        for i in range(clients):
            one = obeying(
                client, load, f"client {i}", over, comes_back=headers[i % 2], max_tokens=TOKENS
            )
            group.create_task(one)
    return load


async def test_a_flood_of_one_tenant_moves_anothers_waits_by_its_share_only(
    system: System,
) -> None:
    await asyncio.to_thread(scale, system, 2)
    configure(system, max_ongoing=2, max_queued=100, wait_budget_ms=0)
    keys = {}
    for name in ("flood", "calm"):
        admin(system, "POST", "tenants", {"id": name})
        keys[name] = admin(system, "POST", f"tenants/{name}/keys")["key"]
    try:
        alone = await _two_tenants(system, keys, flooding=0)
        beside = await _two_tenants(system, keys, flooding=40)
    finally:
        admin(system, "PUT", "access", {"anonymous": "allowed"})
    assert not alone.lost + alone.refused + beside.lost + beside.refused
    # Alone it has four places for its four clients. With half of them, two of its clients run and
    # two wait for one answer of half a second, and for what runs of the others when they come.
    assert share(alone.waits(), 0.99) < 100
    assert share(beside.waits(), 0.99) < 1500, "a queue of 40 would be 5 s"
    assert len(beside.served) > 0.4 * len(alone.served), "less than its share"


async def _two_tenants(system: System, keys: dict[str, str], *, flooding: int) -> Load:
    calm, flood = Load(), Load()
    over = after(6)
    async with (
        sdk(system, keys["calm"]) as one,
        sdk(system, keys["flood"]) as other,
        asyncio.TaskGroup() as group,
    ):
        for i in range(flooding):
            group.create_task(obeying(other, flood, f"flood {i}", over, max_tokens=TOKENS))
        for i in range(4):
            group.create_task(obeying(one, calm, f"calm {i}", over, max_tokens=TOKENS))
    assert not flood.lost
    return calm


async def test_settings_change_under_load_without_a_lost_request_or_a_new_replica(
    system: System,
) -> None:
    configure(system, max_ongoing=2, max_queued=20, wait_budget_ms=0)
    await asyncio.to_thread(scale, system, 2)
    before = {r["pid"] for r in system.replicas()}
    load = Load()
    changed = asyncio.Event()
    async with sdk(system) as client, asyncio.TaskGroup() as group:
        for i in range(12):
            headers = {"x-penstock-session": f"session {i}"}
            asking = obeying(
                client, load, f"client {i}", changed.is_set, max_tokens=4, headers=headers
            )
            group.create_task(asking)
        for n, policy in enumerate(POLICIES):  # each client asks with each of them
            await asyncio.to_thread(
                _set, system, f"selection_policy={policy}", f"max_queued={20 + n}"
            )
            await _more_are_served(load, 24)
        changed.set()
    assert not load.lost + load.refused, (load.lost + load.refused)[:3]
    assert {r["pid"] for r in system.replicas()} == before
    assert len(system.processes("penstock.replica")) == 2


async def _more_are_served(load: Load, count: int) -> None:
    before = len(load.served)
    await until(lambda: len(load.served) >= before + count, f"{count} more answers")


def _set(system: System, *words: str) -> None:
    subprocess.run(
        [PENSTOCK, "set", "sim", *words, "--admin", f"127.0.0.1:{system.admin_port}",
         "--data-dir", system.data], check=True, capture_output=True, timeout=20,
    )  # fmt: skip


async def test_nobody_who_waits_is_lost_with_a_killed_replica(system: System) -> None:
    configure(system, max_ongoing=2, max_queued=20, selection_policy="power_of_two")
    victim = system.replicas()[0]["pid"]
    async with sdk(system) as client, asyncio.TaskGroup() as group:
        asked = [
            group.create_task(ask_once(client, f"waiting {i}", max_tokens=20)) for i in range(24)
        ]
        await asyncio.to_thread(
            # Told once a second, the time that an answer takes: the first may be over by then.
            eventually,
            lambda: system.gateway()["queued"] >= 12,
            within=5,
            what="a long queue",
        )
        system.kill(victim)
    answers: list[Answer] = [task.result() for task in asked]
    waited = [a for a in answers if a.status == 200]
    # Unary answers that the killed one was at work on go to the other, or fail with an error.
    assert len(waited) >= 22, [a.error for a in answers if a.status != 200]
    assert all(a.status in (200, 502, 503) for a in answers)
    await asyncio.to_thread(system.wait_ready, 2, within=30)
