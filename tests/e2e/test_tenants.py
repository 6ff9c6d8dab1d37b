"""Keys and limits of tenants, as their clients meet them, and what is counted of their requests."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.e2e.loads import Answer, admin, ask_once, configure, sdk
from tests.e2e.settlements import (
    PROMPT,
    Bill,
    Line,
    finish,
    leave_after_one,
    leave_midway,
    one_token,
)
from tests.e2e.system import System, eventually, running
from tests.fakes.ports import free_ports
from tests.fakes.waiting import until

pytestmark = pytest.mark.alone

# Between two looks at a door that opens or closes.
LOOK = 0.01
REPORT_INTERVAL = 1.0  # seconds between a gateway's reports
ON_ITS_WAY = 0.2  # seconds: what a report takes until the head has it, at most
Job = Callable[[Line], Awaitable[None]]
_names = (f"tenant-{n}" for n in itertools.count())


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """Two simulated replicas whose counts can be read, with room for all that these tests send."""
    settings = "tokens_per_second=0 answer_tokens=8 max_running=512 per_request=1"
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", settings)
    metrics = ("--node-metrics", f"127.0.0.1:{free_ports(1)[0]}")
    with running(folder, *options, *metrics, replicas=2, within=60) as system:
        yield system


def tenant(system: System, **limits: object) -> str:
    """A new tenant's id."""
    name = next(_names)
    admin(system, "POST", "tenants", {"id": name, **limits})
    return name


def new_key(system: System, of: str, **fields: object) -> dict[str, Any]:
    """A new key of a tenant, once the gateway knows it."""
    made: dict[str, Any] = admin(system, "POST", f"tenants/{of}/keys", fields)
    took_effect(system, made["key"], 200)
    return made


def models(system: System, key: str | None) -> tuple[int, bytes]:
    """Status and body of the list of models, with a key or without."""
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    request = urllib.request.Request(system.base_url + "/models", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def _status(system: System, key: str | None) -> int:
    """0 where no gateway answers."""
    try:
        return models(system, key)[0]
    except OSError:
        return 0


def took_effect(system: System, key: str | None, status: int) -> float:
    """Seconds until requests with this key, or without any, are answered so."""
    began = time.monotonic()
    while _status(system, key) != status:
        assert time.monotonic() - began < 5, f"not answered with {status}"
        time.sleep(LOOK)
    return time.monotonic() - began


def ask(system: System, key: str, **body: Any) -> Answer:
    """One short answer through the SDK, or what stood against it."""

    async def asked() -> Answer:
        async with sdk(system, key) as client:
            return await ask_once(client, "one two three", **body)

    return asyncio.run(asked())


def usage(system: System, of: str) -> dict[str, int]:
    """All that a tenant used."""
    total: dict[str, int] = system.admin(f"tenants/{of}/usage")["total"]
    return total


def test_the_first_key_closes_the_door_and_a_revoked_one_does_not_open_it(
    system: System,
) -> None:
    assert models(system, None)[0] == 200
    owner = tenant(system)
    made = admin(system, "POST", f"tenants/{owner}/keys", {})
    assert took_effect(system, None, 401) < 1
    assert took_effect(system, made["key"], 200) < 1
    assert b"API key" in models(system, None)[1]
    admin(system, "DELETE", f"tenants/{owner}/keys/{made['id']}")
    assert took_effect(system, made["key"], 401) < 1
    assert models(system, None)[0] == 401, "it stays closed"
    answer = ask(system, made["key"])
    assert (answer.status, answer.reason) == (401, "")


def test_a_key_ends_when_it_expires(system: System) -> None:
    owner = tenant(system)
    end = datetime.now(UTC) + timedelta(seconds=2)
    made = new_key(system, owner, expires_at=end.isoformat())
    assert took_effect(system, made["key"], 401) > 0.5
    assert abs((datetime.now(UTC) - end).total_seconds()) < 1


def test_a_tenant_may_use_what_it_was_given_and_sees_nothing_else(system: System) -> None:
    other = new_key(system, tenant(system, models=["other"]))["key"]
    assert ask(system, other).status == 403
    assert b'"data":[]' in models(system, other)[1].replace(b" ", b"")
    pirate = new_key(system, tenant(system, adapters=["pirate"]))["key"]
    listed = models(system, pirate)[1]
    assert b"sim:pirate" in listed
    assert b"sim:json" not in listed
    client = openai.OpenAI(base_url=system.base_url, api_key=pirate, max_retries=0)
    messages: Any = [{"role": "user", "content": "hello"}]
    with client, pytest.raises(openai.PermissionDeniedError):
        client.chat.completions.create(model="sim:json", messages=messages)


def test_requests_of_a_minute_are_counted_down_and_the_time_to_come_back_is_true(
    system: System,
) -> None:
    key = new_key(system, tenant(system, requests_per_minute=40))["key"]
    left = []
    while (answer := ask(system, key, max_tokens=1)).status == 200:
        assert answer.headers["x-ratelimit-limit-requests"] == "40"
        left.append(int(answer.headers["x-ratelimit-remaining-requests"]))
        assert "x-ratelimit-reset-requests" in answer.headers
    assert 40 <= len(left) <= 42, "the minute's, and what came back meanwhile"
    assert left == sorted(left, reverse=True)
    assert (answer.status, answer.reason) == (429, "rate_limited")
    assert answer.headers["x-ratelimit-remaining-requests"] == "0"
    time.sleep(answer.retry_seconds)
    assert ask(system, key, max_tokens=1).status == 200


def test_tokens_of_a_minute_are_counted_down_on_streams_too(system: System) -> None:
    key = new_key(system, tenant(system, tokens_per_minute=1200))["key"]
    first = ask(system, key, max_tokens=100)
    assert first.headers["x-ratelimit-limit-tokens"] == "1200"
    with openai.OpenAI(base_url=system.base_url, api_key=key, max_retries=0) as client:
        messages: Any = [{"role": "user", "content": "one two three"}]
        raw = client.chat.completions.with_raw_response.create(
            model="sim", messages=messages, stream=True, max_tokens=100
        )
        assert "x-ratelimit-remaining-tokens" in raw.headers
        assert len([c for c in raw.parse() if c.choices and c.choices[0].delta.content]) == 100
    for _ in range(20):
        answer = ask(system, key, max_tokens=100)
        if answer.status != 200:
            break
    assert (answer.status, answer.reason) == (429, "rate_limited")
    assert answer.retry_seconds <= 10
    time.sleep(answer.retry_seconds)
    assert ask(system, key, max_tokens=100).status == 200


async def test_streams_of_a_tenant_are_limited_and_others_are_not(system: System) -> None:
    key = new_key(system, tenant(system, max_streams=2))["key"]
    free = new_key(system, tenant(system))["key"]
    lines = [Line(system.gateway_port, key) for _ in range(2)]
    for line in lines:
        await one_token(line)
    async with sdk(system, key) as client, sdk(system, free) as other:
        refused = await ask_once(client, "a third")
        assert (refused.status, refused.reason) == (429, "rate_limited")
        assert (await ask_once(other, "another's")).status == 200
        for line in lines:
            line.leave()
        await asyncio.sleep(refused.retry_seconds)
        assert (await ask_once(client, "a third")).status == 200


async def test_who_has_priority_goes_first_and_nobody_has_more_than_was_granted(
    system: System,
) -> None:
    keys = {
        name: new_key(system, tenant(system, priority=name))["key"] for name in ("high", "normal")
    }
    configure(system, max_ongoing=1, max_queued=50)
    slow: Any = {"simulate": {"tokens_per_second": 20}, "max_tokens": 8}
    claim = {"x-penstock-priority": "high"}
    try:
        async with (
            sdk(system, keys["normal"]) as normal,
            sdk(system, keys["high"]) as high,
            asyncio.TaskGroup() as group,
        ):
            asked = [
                group.create_task(ask_once(normal, f"{n}", headers=claim, **slow))
                for n in range(20)
            ]
            await _until(lambda: system.gateway()["queued"] >= 8, "a queue")
            first = await ask_once(high, "urgent", **slow)
        others = [task.result() for task in asked]
    finally:
        configure(system, max_ongoing=0, max_queued=100)
    assert first.status == 200
    assert all(a.status == 200 for a in others)
    assert first.waited_ms < max(a.waited_ms for a in others) / 2, "eight or more waited before"


async def test_ten_thousand_settlements_are_counted_to_the_token(system: System) -> None:
    owner = tenant(system)
    key = new_key(system, owner)["key"]
    made = completion_tokens(system)
    bill = Bill()
    jobs: list[Job] = [
        *_finishing(bill, 7200),
        *[partial(leave_after_one, bill=bill)] * 400,
        *[partial(leave_midway, bill=bill)] * 400,
    ]
    await _work_off(system, key, jobs)
    # What was made for those that left midway is what the replicas counted beside all the others'.
    await _until(lambda: system.gateway()["in_flight"] == 0, "the end of all calls")
    midway = completion_tokens(system) - made - bill.completion
    assert midway >= 400 * 4
    bill.completion += midway
    await _until(lambda: _is_billed(system, owner, bill), "the sum of what was finished and left")

    configure(system, resume="off")
    held = [Line(system.gateway_port, key) for _ in range(100)]
    readers = [await one_token(line) for line in held]
    async with asyncio.TaskGroup() as group:
        group.create_task(_work_off(system, key, _finishing(bill, 2000)))
        settled = bill.settled
        await until(lambda: bill.settled >= settled + 200, "the work is under way")
        system.kill(system.replicas()[0]["pid"])
        broken = await asyncio.gather(*map(_is_told, readers))
    assert 0 < sum(broken) < 100
    for line in held:
        line.leave()
        bill.add(1)  # what came before the replica was lost, or all that was made
    assert bill.settled > 10_000
    await _until(lambda: _is_billed(system, owner, bill), "the sum with what was lost")
    configure(system, resume="on")
    await _until(lambda: len(system.replicas()) == 2, "the replica back")


def completion_tokens(system: System) -> int:
    """What all replicas made since they began."""
    [address] = [
        o for before, o in itertools.pairwise(system.options) if before == "--node-metrics"
    ]
    with urllib.request.urlopen(f"http://{address}/metrics") as reply:
        lines = reply.read().decode().splitlines()
    name = "penstock_replica_completion_tokens_total{"
    return sum(int(float(x.split()[-1])) for x in lines if x.startswith(name))


def _finishing(bill: Bill, count: int) -> list[Job]:
    """Whole answers of one to seven tokens."""
    return [partial(finish, bill=bill, tokens=1 + n % 7) for n in range(count)]


async def _work_off(system: System, key: str, jobs: list[Job]) -> None:
    """All jobs, mixed, over 24 connections."""
    random.Random(10).shuffle(jobs)
    mixed = iter(jobs)

    async def work() -> None:
        line = Line(system.gateway_port, key)
        for job in mixed:
            await job(line)
        line.leave()

    async with asyncio.TaskGroup() as group:
        for _ in range(24):
            group.create_task(work())


async def _is_told(reader: asyncio.StreamReader) -> bool:
    """Whether a stream that stands ends with an error within two seconds."""
    try:
        async with asyncio.timeout(2):
            while b'"error"' not in (event := await reader.readuntil(b"\n\n")):
                assert b"data:" not in event, event
    except TimeoutError:
        return False
    return True


def _is_billed(system: System, of: str, bill: Bill) -> bool:
    found = usage(system, of)
    counted = (found["requests"], found["prompt_tokens"], found["completion_tokens"])
    wanted = (bill.settled, bill.prompt, bill.completion)
    if counted != wanted:
        raise ValueError(f"{counted} are counted, and {wanted} were used")
    return True


async def _until(probe: Callable[[], bool], what: str) -> None:
    await asyncio.to_thread(eventually, probe, within=10, what=what)


async def _everything_told_is_counted(system: System) -> None:
    """What is told later than all that was told before is counted: they are stored together."""
    owner = tenant(system)
    line = Line(system.gateway_port, new_key(system, owner)["key"])
    await finish(line, Bill(), 1)
    line.leave()
    await _until(lambda: usage(system, owner)["requests"] == 1, "what was told last")


async def test_a_killed_gateway_loses_at_most_what_it_had_not_reported(system: System) -> None:
    owner = tenant(system)
    key = new_key(system, owner)["key"]
    bill = Bill()
    ended: list[float] = []
    line = Line(system.gateway_port, key)
    began = time.monotonic()
    while time.monotonic() - began < 3.3:
        await finish(line, bill, 3)
        ended.append(time.monotonic())
    killed = time.monotonic()
    system.kill(system.gateway()["pid"])
    line.leave()
    await asyncio.to_thread(took_effect, system, key, 200)
    await _everything_told_is_counted(system)
    counted = usage(system, owner)["requests"]
    safe = sum(at < killed - REPORT_INTERVAL - ON_ITS_WAY for at in ended)
    assert safe <= counted <= bill.settled
    assert usage(system, owner)["prompt_tokens"] == counted * PROMPT
    assert usage(system, owner)["completion_tokens"] == counted * 3
    await finish(line, bill, 3)
    line.leave()
    await _until(
        lambda: usage(system, owner)["requests"] == counted + 1, "what the next one counts"
    )
