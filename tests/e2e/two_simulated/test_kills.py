"""Processes are killed while clients stream; nobody is told that half an answer is a whole one."""

from __future__ import annotations

import asyncio
import time

from tests.e2e.streams import ask, twenty_streams
from tests.e2e.system import System, eventually, get_json


async def test_a_killed_replica_costs_no_stream_and_comes_back(two_simulated: System) -> None:
    victim = two_simulated.replicas()[0]
    async with twenty_streams(two_simulated) as streams:
        two_simulated.kill(victim["pid"])
        for _ in range(20):
            await ask(two_simulated)
    assert all(s.complete and s.tokens == 60 for s in streams)
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
            within=60,
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
        within=60,
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
