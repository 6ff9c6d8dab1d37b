"""Several gateways of one head: all know the same keys, and share the limits of each tenant."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.e2e.fleet import (
    MAY_GIVE,
    Fleet,
    ask_at_once,
    client_at,
    fleet_of,
    flood,
    for_seconds,
    is_even,
    is_refused,
    limits,
    status_at,
    took_effect,
)
from tests.e2e.loads import Load, admin, ask_once
from tests.e2e.settlements import Line, one_token
from tests.e2e.system import PENSTOCK, System, eventually, running

pytestmark = pytest.mark.alone

GATEWAYS = 3
LIMIT = 300  # requests a minute
# Shares follow what gateways report each second, and are told at most every five.
TOLD_WITHIN = 12.0  # seconds
BRIEF = {"max_tokens": 1}


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """One simulated replica with room for all that these tests send."""
    settings = "tokens_per_second=0 answer_tokens=8 max_running=512 per_request=1"
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", settings)
    with running(folder, *options, within=60) as system:
        yield system


@pytest.fixture(scope="module")
def fleet(system: System, folder: Path) -> Iterator[Fleet]:
    """Three gateways before it, with even shares of what no tenant has asked for yet."""
    with fleet_of(system, folder, GATEWAYS) as fleet:
        key = fleet.new_key(requests_per_minute=1000 * GATEWAYS)
        eventually(lambda: is_even(limits(fleet.ports, key)), within=20, what="even shares")
        yield fleet


@pytest.fixture(scope="module")
def leaning(fleet: Fleet) -> str:
    """A key of which the first gateway may give nearly all, since it alone was asked."""
    key = fleet.new_key(requests_per_minute=LIMIT)
    asyncio.run(_is_asked_alone(fleet.ports[0], key))
    return key


async def _is_asked_alone(port: int, key: str) -> None:
    """Asks one gateway now and then, less often than its limit fills up again."""
    async with client_at(port, key) as client, asyncio.timeout(TOLD_WITHIN):
        while int((await ask_once(client, "more")).headers[MAY_GIVE]) < 0.75 * LIMIT:
            await asyncio.sleep(0.6)


def served(loads: Sequence[Load]) -> list[int]:
    """How many answers each gateway gave."""
    return [len(load.served) for load in loads]


def test_a_new_key_works_and_a_revoked_one_stops_at_every_gateway_within_a_second(
    fleet: Fleet,
) -> None:
    owner = fleet.tenant()
    for _ in range(5):
        made = admin(fleet.system, "POST", f"tenants/{owner}/keys", {})
        assert took_effect(fleet.ports, made["key"], 200) < 1
        admin(fleet.system, "DELETE", f"tenants/{owner}/keys/{made['id']}")
        assert took_effect(fleet.ports, made["key"], 401) < 1
        assert {status_at(port, made["key"]) for port in fleet.ports * 5} == {401}


async def test_streams_of_a_key_go_on_at_every_gateway_unless_they_are_ended_with_it(
    fleet: Fleet,
) -> None:
    owner = await asyncio.to_thread(fleet.tenant)
    kept, ended = [
        admin(fleet.system, "POST", f"tenants/{owner}/keys", {"name": name})
        for name in ("kept", "ended")
    ]
    await asyncio.to_thread(took_effect, fleet.ports, ended["key"], 200)
    lines = [Line(port, key["key"]) for key in (kept, ended) for port in fleet.ports]
    readers = [await one_token(line) for line in lines]
    said = await asyncio.to_thread(_revoke, fleet.system, owner, kept["id"])
    assert "go on to their end" in said
    said = await asyncio.to_thread(_revoke, fleet.system, owner, ended["id"], "--end-streams")
    assert "end with the error key_revoked" in said
    async with asyncio.timeout(2):
        for reader in readers[GATEWAYS:]:
            assert b'"code":"key_revoked"' in await reader.readuntil(b"}}\n\n")
    heard = [asyncio.ensure_future(reader.readuntil(b"\n\n")) for reader in readers[:GATEWAYS]]
    await asyncio.wait(heard, timeout=1)
    assert not any(each.done() for each in heard), "of the other key"
    for line in lines:
        line.leave()
    await asyncio.gather(*heard, return_exceptions=True)
    usage = f"tenants/{owner}/usage"
    await asyncio.to_thread(
        eventually,
        lambda: fleet.system.admin(usage)["total"]["completion_tokens"] == len(lines),
        within=10,
        what="the bill, with what was ended",
    )


def _revoke(system: System, *words: str) -> str:
    """What the command line says of it."""
    at = ("--admin", f"127.0.0.1:{system.admin_port}", "--data-dir", str(system.data))
    command = [str(PENSTOCK), "keys", "revoke", *words, *at]
    return subprocess.run(command, check=True, capture_output=True, timeout=20, text=True).stdout


async def test_requests_of_a_minute_are_of_all_gateways_together(fleet: Fleet) -> None:
    key = await asyncio.to_thread(fleet.new_key, requests_per_minute=LIMIT)
    began = time.monotonic()
    loads = await flood(fleet.ports, key, for_seconds(3), **BRIEF)
    assert all(is_refused(load) for load in loads), "each has its end"
    assert {a.reason for load in loads for a in load.refused} == {"rate_limited"}
    assert LIMIT - GATEWAYS <= sum(served(loads)) <= most_since(began), served(loads)
    assert is_even(served(loads)), served(loads)


def most_since(began: float) -> float:
    """What all gateways may have given by then: a minute's, and what comes back meanwhile."""
    return LIMIT * (1 + (time.monotonic() - began) / 60) + GATEWAYS


async def test_a_gateway_that_is_asked_alone_may_give_nearly_all_of_a_limit(
    fleet: Fleet, leaning: str
) -> None:
    began = time.monotonic()
    [full] = await flood(fleet.ports[:1], leaning, is_refused, **BRIEF)
    # It is used up now: what comes back is the share.
    [most] = await flood(fleet.ports[:1], leaning, for_seconds(4), **BRIEF)
    assert len(most.served) > 0.6 * LIMIT * 4 / 60, "a third would be its share among equals"
    others = await flood(fleet.ports[1:], leaning, is_refused, **BRIEF)
    assert all(served(others)), "the next request may come anywhere"
    everything = served([full, most, *others])
    assert sum(everything) <= most_since(began), everything


async def test_requests_under_way_are_limited_over_all_gateways(fleet: Fleet) -> None:
    limit = 10
    key = await asyncio.to_thread(fleet.new_key, max_streams=limit)
    slow = {"simulate": {"tokens_per_second": 10}, "max_tokens": 15}
    loads = await ask_at_once(fleet.ports, key, limit, **slow)
    assert {a.reason for load in loads for a in load.refused} == {"rate_limited"}
    assert sum(served(loads)) == limit, served(loads)
    again = await ask_at_once(fleet.ports, key, limit, **slow)
    assert served(again) == served(loads)


async def test_long_requests_stay_within_the_limit_though_load_moves_from_gateway_to_gateway(
    fleet: Fleet,
) -> None:
    limit = 12
    key = await asyncio.to_thread(fleet.new_key, max_streams=limit)
    runs = [Runs() for _ in fleet.ports[:2]]
    for port, here in zip(fleet.ports, runs, strict=False):
        until = time.monotonic() + 1.5 * TOLD_WITHIN
        async with client_at(port, key) as client, asyncio.TaskGroup() as group:
            for _ in range(limit):
                group.create_task(keep_running(client, here, until, seconds=6))
    everywhere = Runs([span for here in runs for span in here.spans])
    assert everywhere.most() <= limit
    # A gateway that is asked alone is given more than its part among equals.
    assert min(here.most() for here in runs) > limit / GATEWAYS


@dataclass
class Runs:
    """When answers began and ended, as their clients saw it."""

    spans: list[tuple[float, float]] = field(default_factory=list)

    def most(self) -> int:
        """How many there were at once; the last moments, in which one hears of its end when another
        has begun, do not count."""
        moments = sorted(
            [(begin, 1) for begin, _ in self.spans] + [(end - 0.5, -1) for _, end in self.spans]
        )
        return max(itertools.accumulate(step for _, step in moments))


async def keep_running(
    client: openai.AsyncOpenAI, runs: Runs, until: float, *, seconds: int
) -> None:
    """Asks for one long answer after the other, and where it is refused a second later again."""
    slow: dict[str, Any] = {"simulate": {"tokens_per_second": 5}, "max_tokens": 5 * seconds}
    while (began := time.monotonic()) < until:
        answer = await ask_once(client, "one two three", **slow)
        if answer.status == 200:
            runs.spans.append((began, time.monotonic()))
        else:
            assert answer.reason == "rate_limited", answer
            await asyncio.sleep(answer.retry_seconds)


async def test_without_a_head_the_last_shares_hold(fleet: Fleet, leaning: str) -> None:
    free = await asyncio.to_thread(fleet.new_key)
    revoked = await asyncio.to_thread(_revoked, fleet)
    with fleet.without_a_head():
        told = await asyncio.to_thread(limits, fleet.ports, leaning)
        assert told[0] > 2 * max(told[1:])
        began = time.monotonic()
        # So long that a head would have given more to those that are asked now.
        async with asyncio.TaskGroup() as group:
            limited = group.create_task(flood(fleet.ports[1:], leaning, for_seconds(7), **BRIEF))
            unlimited = group.create_task(flood(fleet.ports, free, for_seconds(7), clients=1))
        assert not any(is_refused(load) for load in unlimited.result())
        assert all(served(unlimited.result()))
        minutes = (time.monotonic() - began) / 60
        for load, limit in zip(limited.result(), told[1:], strict=True):
            assert is_refused(load)
            assert 0 < len(load.served) <= limit * (1 + minutes)
        assert await asyncio.to_thread(limits, fleet.ports, leaning) == told
        assert {status_at(port, revoked) for port in fleet.ports} == {401}
    fresh = await asyncio.to_thread(fleet.new_key)
    assert {status_at(port, fresh) for port in fleet.ports} == {200}


async def test_a_gateway_that_starts_without_a_head_goes_by_the_share_that_it_had(
    fleet: Fleet, leaning: str
) -> None:
    with fleet.without_a_head():
        told = await asyncio.to_thread(limits, fleet.ports, leaning)
        fleet.others[-1].kill()
        await fleet.others[-1].start()
        began = time.monotonic()
        [load] = await flood(fleet.ports[-1:], leaning, is_refused, **BRIEF)
        assert await asyncio.to_thread(limits, fleet.ports, leaning) == told
        assert 0 < len(load.served) <= told[-1] * (1 + (time.monotonic() - began) / 60)


def _revoked(fleet: Fleet) -> str:
    """A key that no gateway takes any more."""
    owner = fleet.tenant()
    made = admin(fleet.system, "POST", f"tenants/{owner}/keys", {})
    took_effect(fleet.ports, made["key"], 200)
    admin(fleet.system, "DELETE", f"tenants/{owner}/keys/{made['id']}")
    took_effect(fleet.ports, made["key"], 401)
    return str(made["key"])


async def test_a_gateway_that_goes_leaves_its_share_to_the_others(fleet: Fleet) -> None:
    key = await asyncio.to_thread(fleet.new_key, requests_per_minute=100 * LIMIT)
    gone = fleet.others[-1]
    gone.kill()
    two = fleet.ports[:-1]
    await asyncio.to_thread(
        eventually,
        lambda: sum(limits(two, key)) > 0.99 * 100 * LIMIT,
        within=TOLD_WITHIN,
        what="all of the limit for two",
    )
    await gone.start()
    await asyncio.to_thread(
        eventually, lambda: is_even(limits(fleet.ports, key)), within=TOLD_WITHIN, what="thirds"
    )
