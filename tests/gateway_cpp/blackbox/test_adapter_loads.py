"""Where adapters that are not loaded are asked for, and what is made of loads that fail."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from penstock.v1 import inference_pb2 as inference
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import deployment
from tests.fakes.fake_replica import FakeCall, FakeReplica, Script, hello, refuse
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.held import Held
from tests.gateway_cpp.blackbox.raw_http import chat
from tests.gateway_cpp.blackbox.test_selection import POLICIES, THREE, counts

CODES = [
    "adapter_slots_full",
    "adapter_load_failed",
    "adapter_load_timeout",
    "adapter_mismatch",
]
every_code = pytest.mark.parametrize("code", CODES)
PIRATE = chat(model="mini:pirate")


def in_turn(**limits: Any) -> routes.DeploymentRoute:
    """`mini`, whose replicas take turns."""
    return deployment(
        adapters={"pirate": "pirate@1", "poet": "poet@1"},
        selection_policy="round_robin",
        limits=routes.Limits(max_queued=9, **limits),
    )


def cannot(code: str) -> Script:
    """A script: what no adapter is needed for is answered, the rest refused."""

    async def script(call: FakeCall) -> None:
        await (refuse(503, code, retry=True) if call.request.adapter else hello)(call)

    return script


def tell_slots(replica: FakeReplica, slots: int, *adapters: str) -> None:
    """It holds these, and may hold so many."""
    replica.tell_load(
        inference.Load(
            state=inference.REPLICA_STATE_READY,
            max_running=256,
            adapters=adapters,
            adapter_slots=slots,
            gateways=1,
        )
    )


@every_code
async def test_a_replica_that_cannot_load_it_is_passed_over_and_not_doubted(
    start: Start, code: str
) -> None:
    system = await start("--threads", "1", scripts=(cannot(code), hello), deployment=in_turn())
    first, second = system.replicas
    tell_slots(second, 4, "poet@1")  # so the first one is to load it
    async with asyncio.timeout(20):
        while len(first.calls) < 5:
            answer = await system.ask(PIRATE)
            assert answer.status == 200
            assert answer.headers["x-penstock-adapter-version"] == "pirate@1"
            assert answer.headers["x-penstock-replica"] == second.replica_id
    before = counts(system)
    for _ in range(20):
        assert (await system.ask(chat())).status == 200
    grown = [now - then for now, then in zip(counts(system), before, strict=True)]
    assert min(grown) >= 5, "it has its share of what needs no adapter"
    report = await system.reports(lambda _: True, "a report comes")
    assert not report.doubts
    assert await system.metric("penstock_gateway_ejections_total") == 0


@every_code
async def test_where_none_can_load_it_the_client_is_told_the_last_ones_reason(
    start: Start, code: str
) -> None:
    scripts = (cannot(code),) * 4
    system = await start("--threads", "1", scripts=scripts, deployment=in_turn())
    answer = await system.ask(PIRATE)
    assert answer.status == 503
    assert answer.error["code"] == code
    assert answer.error["type"] == "server_error"
    assert answer.error["message"] == f"the replica said {code}"
    assert answer.headers["x-penstock-adapter-version"] == "pirate@1"
    assert answer.headers["x-should-retry"] == "true"
    soon = code in ("adapter_slots_full", "adapter_load_timeout")
    assert ("retry-after" in answer.headers) == soon
    assert sum(counts(system)) == 3, "as many as any request is tried on"
    line = await until(lambda: system.gateway.find_log("request settled"), "it is logged")
    assert line["error_code"] == code
    assert line["adapter"] == "pirate@1"


@every_code
async def test_a_stream_that_was_opened_early_is_told_in_the_stream(
    start: Start, code: str
) -> None:
    opened = asyncio.Event()

    async def slowly(call: FakeCall) -> None:
        await opened.wait()
        await refuse(503, code, retry=True)(call)

    system = await start("--heartbeat-ms", "50", scripts=(slowly, slowly), deployment=in_turn())
    async with system.client() as client:
        await client.send(chat(model="mini:pirate", stream=True))
        status, headers = await client.head()
        assert status == 200
        assert headers["x-penstock-adapter-version"] == "pirate@1"
        opened.set()
        rest = b""
        while data := await client.chunk():
            rest += data
    last = rest.removesuffix(b"\n\n").split(b"\n\n")[-1].removeprefix(b"data: ")
    assert json.loads(last)["error"]["code"] == code
    assert b"[DONE]" not in rest


async def fills(system: System, *replicas: FakeReplica, model: str = "mini:pirate") -> None:
    """Waits until what is asked goes to one of these, three times in a row."""
    in_a_row = 0
    async with asyncio.timeout(20):
        while in_a_row < 3:
            before = sum(len(replica.calls) for replica in replicas)
            answer = await system.ask(chat(model=model, user=str(sum(counts(system)))))
            assert answer.status == 200
            after = sum(len(replica.calls) for replica in replicas)
            in_a_row = in_a_row + 1 if after > before else 0


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_burst_for_a_cold_adapter_comes_to_one_replica(start: Start, policy: str) -> None:
    held = Held()
    named = deployment(adapters={"pirate": "pirate@1"}, selection_policy=policy)
    system = await start(scripts=(held, held, held), deployment=named)
    async with asyncio.TaskGroup() as group:
        asked = [
            group.create_task(system.ask(chat(model="mini:pirate", user=f"user {i}")))
            for i in range(30)
        ]
        await until(lambda: sum(counts(system)) == 30, "all arrive")
        assert sorted(counts(system)) == [0, 0, 30]
        held.let_go(30)
    assert {each.result().status for each in asked} == {200}


async def test_who_has_a_free_slot_and_the_fewest_adapters_is_asked_to_load_it(
    start: Start,
) -> None:
    system = await start(scripts=THREE, deployment=in_turn())
    first, second, third = system.replicas
    tell_slots(first, 4, "a@1", "b@1")
    tell_slots(second, 4, "a@1")
    tell_slots(third, 1, "b@1")
    await fills(system, second)
    tell_slots(second, 1, "a@1")
    await fills(system, first)
    tell_slots(first, 0)
    await fills(system, second, third)
    tell_slots(third, 1, "pirate@1")
    await fills(system, third)


async def test_a_replica_that_takes_no_adapters_serves_the_rest(start: Start) -> None:
    system = await start(scripts=THREE, deployment=in_turn())
    first, second, third = system.replicas
    tell_slots(first, 0)
    tell_slots(second, 0)
    tell_slots(third, 1, "poet@1")
    await fills(system, third)
    await fills(system, third, model="mini:poet")
    before = counts(system)
    for _ in range(60):
        assert (await system.ask(chat())).status == 200
    grown = [now - then for now, then in zip(counts(system), before, strict=True)]
    assert min(grown[:2]) >= 10
