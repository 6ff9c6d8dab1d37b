"""What a deployment's objectives judge, as the head is told of it."""

from __future__ import annotations

import asyncio

from penstock.v1 import slo_pb2 as slo
from tests.fakes.fake_control import deployment
from tests.fakes.fake_replica import FakeCall, hang, hello, refuse
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import chat

LIMIT_MS = 400
ASKED = deployment(slo=slo.Slo(ttft_p50_ms=LIMIT_MS, total_p99_ms=LIMIT_MS, error_rate=0.5))


async def late_hello(call: FakeCall) -> None:
    """Its first event comes too late."""
    await asyncio.sleep(1.5 * LIMIT_MS / 1000)
    await hello(call)


def told(system: System) -> dict[str, tuple[int, int]]:
    """Of each objective, in the last report: judged, and bad."""
    newest = system.control.reports[-1].deployments if system.control.reports else ()
    return {it.objective: (it.requests, it.bad) for each in newest for it in each.slo}


async def test_good_slow_failed_and_given_up_requests_are_told_apart(start: Start) -> None:
    system = await start(deployment=ASKED)
    (replica,) = system.replicas
    assert (await system.ask(chat(stream=True))).status == 200
    replica.script = late_hello
    assert (await system.ask(chat(stream=True))).status == 200
    replica.script = refuse(500, "server_error", retry=True)
    assert (await system.ask(chat())).status == 500
    assert (await system.ask(chat(stream="maybe"))).status == 400
    replica.script = hang
    calls = len(replica.calls)
    async with system.client() as client:
        await client.send(chat(stream=True))
        await until(lambda: len(replica.calls) > calls, "the call arrives")
        await asyncio.sleep(1.5 * LIMIT_MS / 1000)
        client.leave()
    expected = {"ttft_p50": (3, 2), "total_p99": (3, 2), "error_rate": (3, 1)}
    await until(lambda: told(system) == expected, f"{expected} is told")


async def test_without_objectives_nothing_is_judged(system: System) -> None:
    assert (await system.ask(chat(stream=True))).status == 200
    reports = system.control.reports
    await until(lambda: bool(reports and reports[-1].deployments), "a report tells of mini")
    assert told(system) == {}
