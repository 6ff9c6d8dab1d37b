"""Processes are killed while clients stream; nobody is told that half an answer is a whole one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import openai

from tests.e2e.streams import Stream, read, until
from tests.e2e.system import System, eventually, get_json


def client_of(system: System) -> openai.AsyncOpenAI:
    """An SDK client that shows every failure: no retries of its own."""
    return openai.AsyncOpenAI(base_url=system.base_url, api_key="none", max_retries=0, timeout=60)


@asynccontextmanager
async def twenty_streams(system: System) -> AsyncIterator[list[Stream]]:
    """Twenty streams under way, every one past its first tokens; they end before this does."""
    streams = [Stream() for _ in range(20)]
    async with client_of(system) as client, asyncio.TaskGroup() as group:
        for stream in streams:
            group.create_task(read(client, "sim", stream))
        await until(lambda: all(s.tokens > 2 for s in streams), within=20, what="first tokens")
        assert not any(s.ended for s in streams)
        yield streams


async def ask(system: System) -> str:
    """A short answer; raises when the request fails."""
    async with client_of(system) as client:
        reply = await client.chat.completions.create(
            model="sim",
            messages=[{"role": "user", "content": "hello"}],
            max_tokens=3,
            extra_body={"simulate": {"tokens_per_second": 0}},
        )
    assert reply.choices[0].message.content
    return reply.choices[0].message.content


async def test_a_killed_replica_costs_only_its_own_streams_and_they_are_told(
    two_simulated: System,
) -> None:
    victim = two_simulated.replicas()[0]
    async with twenty_streams(two_simulated) as streams:
        two_simulated.kill(victim["pid"])
        for _ in range(20):
            await ask(two_simulated)
    assert not [s for s in streams if s.silently_truncated]
    lost = [s for s in streams if s.error is not None]
    kept = [s for s in streams if s.complete]
    assert len(lost) + len(kept) == 20
    assert lost, "the killed replica carried no stream"
    assert kept, "the other replica carried no stream"
    assert all(s.tokens == 60 for s in kept)
    assert all(isinstance(s.error, openai.APIError) for s in lost)
    assert not any(isinstance(s.error, openai.APIConnectionError) for s in lost), (
        "an in-stream error object, not a broken connection"
    )
    await asyncio.to_thread(two_simulated.wait_ready, 2, within=30)
    assert victim["pid"] not in {r["pid"] for r in two_simulated.replicas()}


async def test_a_killed_head_costs_nothing_and_comes_back(two_simulated: System) -> None:
    before = {r["pid"] for r in two_simulated.replicas()}
    gateway = two_simulated.gateway()["pid"]
    head = two_simulated.pid_of("head")
    async with twenty_streams(two_simulated) as streams:
        two_simulated.kill(head)
        for _ in range(30):
            await ask(two_simulated)
        await asyncio.to_thread(two_simulated.wait_ready, 2, within=30)
        for _ in range(10):
            await ask(two_simulated)
    assert all(s.complete and s.tokens == 60 for s in streams)
    assert two_simulated.pid_of("head") != head
    assert {r["pid"] for r in two_simulated.replicas()} == before, "replicas were not kept"
    assert two_simulated.gateway()["pid"] == gateway, "the gateway was not adopted"


async def test_a_killed_node_agent_costs_nothing_and_comes_back(two_simulated: System) -> None:
    before = {r["pid"] for r in two_simulated.replicas()}
    agent = two_simulated.pid_of("node")
    async with twenty_streams(two_simulated) as streams:
        two_simulated.kill(agent)
        for _ in range(30):
            await ask(two_simulated)
        await asyncio.to_thread(
            eventually,
            lambda: two_simulated.processes(" node ") and two_simulated.pid_of("node") != agent,
            within=20,
            what="a new node agent",
        )
        for _ in range(10):
            await ask(two_simulated)
    assert all(s.complete and s.tokens == 60 for s in streams)
    await asyncio.to_thread(two_simulated.wait_ready, 2, within=30)
    assert {r["pid"] for r in two_simulated.replicas()} == before, "replicas were not adopted"
    assert len(two_simulated.processes("penstock.replica")) == 2, "orphans"


async def test_an_adopted_replica_that_is_killed_comes_back_too(two_simulated: System) -> None:
    agent = two_simulated.pid_of("node")
    two_simulated.kill(agent)
    await asyncio.to_thread(
        eventually,
        lambda: two_simulated.processes(" node ") and two_simulated.pid_of("node") != agent,
        within=20,
        what="a new node agent",
    )
    await asyncio.to_thread(two_simulated.wait_ready, 2, within=30)
    victim = two_simulated.replicas()[1]["pid"]
    two_simulated.kill(victim)
    await asyncio.to_thread(
        eventually,
        lambda: (
            victim not in {r["pid"] for r in two_simulated.replicas()}
            and len(two_simulated.replicas()) == 2
        ),
        within=30,
        what="the replica back",
    )


def test_a_killed_gateway_is_back_within_two_seconds(two_simulated: System) -> None:
    killed = two_simulated.gateway()["pid"]
    two_simulated.kill(killed)
    began = time.monotonic()
    eventually(
        lambda: get_json(two_simulated.gateway_url + "/readyz"), within=2, what="a ready gateway"
    )
    assert time.monotonic() - began < 2
    assert two_simulated.gateway()["pid"] != killed
    assert asyncio.run(ask(two_simulated))
