"""Head, agent and gateway are restarted in order under load: no stream ends, no request fails."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.e2e.streams import Stream, ask, client_of, twenty_streams, until
from tests.e2e.system import System, eventually


@asynccontextmanager
async def load(system: System) -> AsyncIterator[list[Stream]]:
    """Twenty streams, and short requests all the while; none of them may fail."""
    async with twenty_streams(system) as streams, asyncio.TaskGroup() as group:
        asking = group.create_task(_keep_asking(system))
        yield streams
        await until(lambda: all(s.ended for s in streams), within=30, what="ended streams")
        asking.cancel()
    assert all(s.complete and s.tokens == 60 for s in streams), streams


async def _keep_asking(system: System) -> None:
    """One connection that is kept, and a new one for each second request; twenty a second."""
    async with client_of(system) as client:
        while True:
            await ask(system, client)
            await ask(system)
            await asyncio.sleep(0.1)


def _restarted(system: System, role: str, before: int) -> bool:
    found = [p for p in system.processes(f"penstock.control.main {role} ") if p.pid != before]
    return bool(found)


async def test_a_head_that_is_told_to_stop_leaves_everything_running(
    two_simulated: System,
) -> None:
    replicas = {r["pid"] for r in two_simulated.replicas()}
    gateway, head = two_simulated.gateway()["pid"], two_simulated.pid_of("head")
    async with load(two_simulated):
        os.kill(head, signal.SIGTERM)
        await asyncio.to_thread(
            eventually, lambda: _restarted(two_simulated, "head", head), within=20, what="a head"
        )
        await asyncio.to_thread(two_simulated.wait_ready, 2, within=30)
    assert {r["pid"] for r in two_simulated.replicas()} == replicas
    assert two_simulated.gateway()["pid"] == gateway


async def test_an_agent_that_is_told_to_stop_hands_its_replicas_over(
    two_simulated: System,
) -> None:
    replicas = {r["pid"] for r in two_simulated.replicas()}
    agent = two_simulated.pid_of("node")
    async with load(two_simulated):
        os.kill(agent, signal.SIGTERM)
        await asyncio.to_thread(
            eventually, lambda: _restarted(two_simulated, "node", agent), within=20, what="an agent"
        )
    await asyncio.to_thread(two_simulated.wait_ready, 2, within=30)
    assert {r["pid"] for r in two_simulated.replicas()} == replicas
    assert len(two_simulated.processes("penstock.replica")) == 2, "replacements or orphans"


async def test_a_gateway_gives_way_to_another_on_its_port(two_simulated: System) -> None:
    before = two_simulated.gateway()
    async with load(two_simulated):
        fresh = await asyncio.to_thread(two_simulated.replace_gateway, before["id"])
        assert fresh["pid"] != before["pid"]
        shown = {each["id"]: each["state"] for each in two_simulated.admin("gateways")}
        assert shown == {before["id"]: "draining", fresh["id"]: "ready"}
    await asyncio.to_thread(
        eventually,
        lambda: [each["id"] for each in two_simulated.admin("gateways")] == [fresh["id"]],
        within=40,
        what="the end of the old gateway",
    )
    assert await ask(two_simulated)


async def test_a_gateway_that_anybody_tells_to_stop_refuses_nobody(two_simulated: System) -> None:
    before = two_simulated.gateway()
    async with load(two_simulated):
        os.kill(before["pid"], signal.SIGTERM)
    await asyncio.to_thread(
        eventually,
        lambda: before["id"] not in [each["id"] for each in two_simulated.admin("gateways")],
        within=40,
        what="the end of the old gateway",
    )
    assert await ask(two_simulated)
