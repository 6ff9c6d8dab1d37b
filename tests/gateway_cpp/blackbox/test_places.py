"""A replica's places: how long a call keeps its own, and when others get it."""

from __future__ import annotations

import asyncio

from penstock.v1 import inference_pb2 as inference
from tests.fakes.fake_control import tenant
from tests.fakes.fake_replica import FakeCall, delta, hang, hello
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start
from tests.gateway_cpp.blackbox.held import busy, narrow, waiting
from tests.gateway_cpp.blackbox.raw_http import chat
from tests.gateway_cpp.blackbox.test_admission import refusal
from tests.gateway_cpp.blackbox.test_keys import costs

BEARER = "Authorization: Bearer sesame\r\n"


async def test_a_cancelled_call_keeps_its_place_until_the_replica_has_stopped(
    start: Start,
) -> None:
    stopped = asyncio.Event()

    async def stops_late(call: FakeCall) -> None:
        try:
            await call.cancelled.wait()
        except asyncio.CancelledError:
            await stopped.wait()
            raise

    system = await start(scripts=(stops_late,), deployment=narrow())
    (replica,) = system.replicas
    async with busy(system) as first, waiting(system, chat(user="next")) as (second,):
        first.leave()
        await until(replica.calls[0].cancelled.is_set, "the call is cancelled")
        await system.reports(lambda _: True, "a report later")
        assert len(replica.calls) == 1
        replica.script = hello
        stopped.set()
        assert (await second.response()).status == 200


async def test_the_place_of_a_cancel_that_is_never_answered_is_free_after_ten_seconds(
    start: Start,
) -> None:
    async def never_stops(call: FakeCall) -> None:
        await call.send(delta("first"), tokens=2)
        try:
            await call.cancelled.wait()
        except asyncio.CancelledError:
            await asyncio.Event().wait()

    acme = tenant(keys=["sesame"])
    system = await start(scripts=(never_stops,), deployment=narrow(), tenants=[acme])
    (replica,) = system.replicas
    async with busy(system, chat(BEARER, stream=True)) as leaves:
        await leaves.head()
        assert await leaves.chunk() == delta("first")
        async with waiting(system, chat(user="next")) as (waits,):
            left = asyncio.get_running_loop().time()
            leaves.leave()
            await until(replica.calls[0].cancelled.is_set, "the call is cancelled")
            replica.script = hello
            assert (await waits.response()).status == 200
            assert 9 < asyncio.get_running_loop().time() - left < 15
    await costs(system, 3, 2)  # what was seen of it
    assert (await system.ask(chat())).status == 200


async def test_places_that_another_gateway_has_are_not_taken(start: Start) -> None:
    limits = narrow(max_queued=0, max_ongoing=4)

    async def script(call: FakeCall) -> None:
        await (hello(call) if call.json.get("user") == "brief" else hang(call))

    system = await start(scripts=(script,), deployment=limits)
    (replica,) = system.replicas
    replica.tell_load(
        inference.Load(
            state=inference.REPLICA_STATE_READY,
            max_running=9,
            running=4,
            calls=4,
            calls_elsewhere=4,
            gateways=2,
        )
    )
    async with busy(system):  # its first
        answer = await refusal(system, chat(user="brief"))
    assert answer.headers["x-penstock-drop-reason"] == "queue_full"
