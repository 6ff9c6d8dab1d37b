"""Routes.Explain over a real connection: gateways that answer, restart, and lie."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc
import pytest

from penstock.control.managers.cluster import Cluster
from penstock.control.managers.observe.explain import ExplainManager
from penstock.control.outside.clock import SystemClock
from penstock.control.rpc.explain_service import ExplainService
from penstock.control.state.cluster import ClusterView, Gateway, GatewayState
from penstock.control.state.observe.asking import RequestFilter
from penstock.v1 import explain_pb2, routes_pb2_grpc
from tests.fakes.explaining_gateway import (
    ExplainingGateway,
    endless,
    of_another_question,
    record,
    silent,
)
from tests.fakes.waiting import until

ALL = RequestFilter(limit=100)


class OnlyExplain(routes_pb2_grpc.RoutesServicer):
    """A head that does nothing else."""

    def __init__(self, explain: ExplainManager) -> None:
        self._service = ExplainService(explain)

    async def Explain(
        self,
        requests: AsyncIterator[explain_pb2.ExplainReply],
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> None:
        await self._service.serve(requests, context)


@dataclass(frozen=True, slots=True)
class Served:
    """A served head."""

    explain: ExplainManager
    routes: Any

    async def listed(self) -> list[str]:
        found = await self.explain.listed(ALL, None)
        return [each.record.request_id for each in found.kept]

    async def connected(self, *names: str) -> None:
        """Returns once these can be asked."""

        def known() -> bool:
            return set(names) == set(self.explain.connected)

        await until(known, f"streams of {names}")


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    view = ClusterView()
    for name in ("gw-1", "gw-2"):
        view = view.with_gateway(Gateway(name, GatewayState.REMOTE))
    explain = ExplainManager(Cluster(view), SystemClock())
    server = grpc.aio.server()
    routes_pb2_grpc.add_RoutesServicer_to_server(OnlyExplain(explain), server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Served(explain, routes_pb2_grpc.RoutesStub(channel))  # type: ignore[no-untyped-call]
    await server.stop(None)


async def test_a_gateway_is_asked_on_its_stream_for_as_long_as_it_is_open(served: Served) -> None:
    gateway = ExplainingGateway("gw-1", record("req_1"), record("req_2", 7_000_000))
    async with asyncio.TaskGroup() as tasks:
        life = tasks.create_task(gateway.over(served.routes))
        await served.connected("gw-1")
        assert await served.listed() == ["req_2", "req_1"]
        wanted = RequestFilter("mini", "acme", 5, "queue_full", 9, 11, 7, 13)
        assert (await served.explain.listed(wanted, None)).kept == []
        asked = explain_pb2.RequestFilter(
            deployment="mini", tenant="acme", status=5, reason="queue_full",
            slower_than_ms=9, since_us=11, limit=100, before_us=13,
        )  # fmt: skip
        assert gateway.asked[-1].list == asked
        life.cancel()
    await served.connected()


async def test_the_next_life_of_a_gateway_ends_the_stream_of_the_last(served: Served) -> None:
    last, following = ExplainingGateway(), ExplainingGateway("gw-1", record("req_new"))
    async with asyncio.TaskGroup() as tasks:
        left = tasks.create_task(last.over(served.routes))
        await served.connected("gw-1")
        life = tasks.create_task(following.over(served.routes))
        assert await left is grpc.StatusCode.OK
        assert await served.listed() == ["req_new"]
        life.cancel()


async def test_one_that_answers_what_nobody_asked_is_sent_away_and_the_others_are_not(
    served: Served,
) -> None:
    liar, honest = ExplainingGateway("gw-1"), ExplainingGateway("gw-2", record("req_1"))
    liar.answer = of_another_question
    async with asyncio.TaskGroup() as tasks:
        sent_away = tasks.create_task(liar.over(served.routes))
        life = tasks.create_task(honest.over(served.routes))
        await served.connected("gw-1", "gw-2")
        found = await served.explain.listed(ALL, None)
        assert [each.record.request_id for each in found.kept] == ["req_1"]
        assert found.gateways[0].detail == "its stream ended before it had answered"
        assert await sent_away is grpc.StatusCode.INVALID_ARGUMENT
        await served.connected("gw-2")
        life.cancel()


async def test_a_stream_that_does_not_say_whose_it_is_is_refused(served: Served) -> None:
    assert await ExplainingGateway("").over(served.routes) is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_gateway_that_has_not_reported_is_refused_and_two_of_one_id_are(
    served: Served,
) -> None:
    refused = grpc.StatusCode.FAILED_PRECONDITION
    assert await ExplainingGateway("gw-9").over(served.routes) is refused
    first, second = ExplainingGateway(), ExplainingGateway()
    second.instance = "i2"
    async with asyncio.TaskGroup() as tasks:
        left = tasks.create_task(first.over(served.routes))
        await served.connected("gw-1")
        life = tasks.create_task(second.over(served.routes))
        assert await left is grpc.StatusCode.OK
        assert await first.over(served.routes) is refused
        life.cancel()


async def test_numbers_and_words_that_nobody_knows_are_taken_as_they_are(served: Served) -> None:
    most = 2**64 - 1
    strange = record("req_1", most, status=2**32 - 1, outcome="enchanted", duration_us=most)
    strange.stays.add(deployment="mini", way=9)
    strange.attempts.add(replica="r1", reason="whim").pick.looks.add(replica="r1", load=7)
    strange.phase_us.extend([1] * 1000)
    gateway = ExplainingGateway("gw-1", strange)
    async with asyncio.TaskGroup() as tasks:
        life = tasks.create_task(gateway.over(served.routes))
        await served.connected("gw-1")
        (kept,) = (await served.explain.found("req_1")).kept
        life.cancel()
    assert kept.record.received_at.year == 9999
    assert kept.record.stays[0].way == "named"
    assert len(kept.record.phase_us) < 20


async def test_a_gateway_that_never_stops_does_not_hold_up_another(served: Served) -> None:
    loud, quiet = ExplainingGateway("gw-1"), ExplainingGateway("gw-2", record("req_2", 9_000_000))
    loud.answer = endless
    async with asyncio.TaskGroup() as tasks:
        lives = [tasks.create_task(each.over(served.routes)) for each in (loud, quiet)]
        await served.connected("gw-1", "gw-2")
        for _ in range(3):
            assert (await served.listed())[0] == "req_2"
        loud.answer = silent
        for life in lives:
            life.cancel()
