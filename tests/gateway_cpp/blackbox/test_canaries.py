"""Requests that a canary has and cannot answer: the deployment that was asked does, as it would a
newcomer's, and each has what happened there.
"""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from penstock.v1 import common_pb2 as common
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import deployment, route
from tests.fakes.fake_replica import FakeCall, FakeReplica, Script, hang, hello, refuse
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.held import narrow_limits
from tests.gateway_cpp.blackbox.raw_http import chat


async def with_canary(
    start: Start, canary: Script, *, main: Script = hello, limits: routes.Limits | None = None
) -> tuple[System, FakeReplica, FakeReplica]:
    """`mini` on the first replica, all of whose requests are `next`'s, on the second one."""
    system = await start("--threads", "1", scripts=(main, canary))
    first, second = system.replicas
    deployments = [deployment(canary={"next": 1000}, limits=limits), deployment("next")]
    routed = [route(first), route(second, of="next")]
    await system.has_routes(await system.control.publish(deployments, routed))
    return system, first, second


@pytest.mark.parametrize("status", [500, 503])
async def test_a_sick_canary_gives_its_share_back_and_counts_as_failed(
    start: Start, status: int
) -> None:
    sick = refuse(status, "engine_error", retry=True)
    system, first, second = await with_canary(start, sick)
    for i in range(4):
        answer = await system.ask(chat(seed=i))
        assert answer.status == 200
        assert answer.headers["x-penstock-backend"] == "mini"
    assert (len(first.calls), len(second.calls)) == (4, 4)
    settled = "penstock_gateway_requests_total"
    assert await system.metric(settled, deployment="mini", outcome="succeeded") == 4
    assert await system.metric(settled, deployment="next", outcome="failed", code=str(status)) == 4


async def test_what_a_dead_canary_had_waits_for_no_place_that_a_newcomer_would_not_get(
    start: Start,
) -> None:
    system, first, second = await with_canary(start, hang, main=hang, limits=narrow_limits(0))
    async with AsyncExitStack() as stack:
        for i in range(6):
            client = await stack.enter_async_context(system.client())
            await client.send(chat(seed=i))
        await until(lambda: len(second.calls) == 6, "the canary has all")
        await second.die()
        await until(lambda: len(first.calls) == 1, "one has the place there is")
        while await system.drops("queue_full") < 5:
            await system.ask_status("/livez")
    assert len(first.calls) == 1


async def test_a_refusal_of_a_canary_is_not_the_clients(start: Start) -> None:
    error = common.ErrorDetail(
        status=400, type="invalid_request_error", code="unsupported_parameter", message="not here"
    )

    async def refuses(call: FakeCall) -> None:
        await call.fail(error)

    system, first, _ = await with_canary(start, refuses)
    answer = await system.ask(chat())
    assert answer.status == 200
    assert len(first.calls) == 1
