"""Routes: streams snapshots to gateways, and hears what they count."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import grpc

from penstock.control.errors import NotAdmitted
from penstock.control.managers.fleet.gateway_reports import GatewayReports
from penstock.control.managers.observe.explain import ExplainManager
from penstock.control.managers.routing.routes import RouteManager
from penstock.control.managers.tenancy.usage import UsageManager
from penstock.control.rpc.explain_service import ExplainService
from penstock.control.rpc.route_wire import RouteEncoder, gateway_report, suspect
from penstock.control.rpc.tenant_wire import with_shares
from penstock.control.rpc.usage_wire import DayNews, day_holds, usage_rows
from penstock.control.rpc.wire import host_of, stamp
from penstock.control.state.routing.snapshot import RouteSnapshot
from penstock.control.state.stamp import Stamp
from penstock.v1 import explain_pb2, routes_pb2, routes_pb2_grpc

log = logging.getLogger(__name__)

Context = grpc.aio.ServicerContext[Any, Any]


class RoutesService(routes_pb2_grpc.RoutesServicer):
    """routes.proto, service Routes."""

    def __init__(
        self,
        routes: RouteManager,
        reports: GatewayReports,
        usage: UsageManager,
        explain: ExplainManager,
    ) -> None:
        self._routes = routes
        self._reports = reports
        self._usage = usage
        self._explain = ExplainService(explain)
        self._encoder = RouteEncoder()
        self._latest: tuple[RouteSnapshot, routes_pb2.RouteSnapshot] | None = None

    async def Watch(
        self, request: routes_pb2.WatchRoutesRequest, context: Context
    ) -> AsyncIterator[routes_pb2.RouteSnapshot]:
        """Whole snapshots: one at once, then one for each change."""
        await self._admit(request.gateway_id, stamp(request.stamp), context)
        log.info(
            "gateway watches",
            extra={"gateway": request.gateway_id, "have_version": request.have_version},
        )
        async for snapshot in self._routes.watch(request.have_version):
            yield with_shares(self._encoded(snapshot), snapshot, request.gateway_id)

    async def Report(
        self, requests: AsyncIterator[routes_pb2.GatewayReport], context: Context
    ) -> None:
        """Keeps the latest report of each gateway, adds up what they tell of usage, and tells the
        sums to those that take them, each time that they were read."""
        try:
            async with asyncio.TaskGroup() as tasks:
                telling: asyncio.Task[None] | None = None
                async for message in requests:
                    await self._take(message, host_of(context.peer()))
                    if message.takes_replies and telling is None:
                        telling = tasks.create_task(self._tell(message, context))
                if telling is not None:
                    telling.cancel()
        except* NotAdmitted as refused:
            reason = str(refused.exceptions[0])
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, reason)
        except* OverflowError as refused:
            reason = str(refused.exceptions[0])
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, reason)
        await self._usage.flush()  # it may be a gateway's last word
        await context.write(routes_pb2.GatewayReportReply())

    async def Explain(
        self, requests: AsyncIterator[explain_pb2.ExplainReply], context: Context
    ) -> None:
        """Asks what was decided about requests, for as long as the gateway keeps this open."""
        await self._explain.serve(requests, context)

    async def _take(self, message: routes_pb2.GatewayReport, machine: str) -> None:
        await self._reports.observe_stamp(message.gateway_id, stamp(message.stamp))
        try:
            report = gateway_report(message, machine)
        except OverflowError:
            raise OverflowError(f"at_ms is {message.at_ms}: not a time") from None
        suspected = [suspect(s) for s in message.suspects]
        await self._reports.take(message.gateway_id, report, suspected)
        rows, holds = usage_rows(message), day_holds(message)
        self._usage.take(message.gateway_id, message.instance, rows, holds, message.number)

    async def _tell(self, first: routes_pb2.GatewayReport, context: Context) -> None:
        news, day = DayNews(), self._usage.day
        while True:
            other = day.news
            if told := day.of(first.gateway_id, first.instance):
                await context.write(news.since(told))
            await other.wait()

    async def _admit(self, gateway_id: str, observed: Stamp, context: Context) -> None:
        try:
            await self._reports.observe_stamp(gateway_id, observed)
        except NotAdmitted as error:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))

    def _encoded(self, snapshot: RouteSnapshot) -> routes_pb2.RouteSnapshot:
        """What is the same for all gateways: encoding many deployments takes its time."""
        if self._latest is None or self._latest[0] is not snapshot:
            self._latest = (snapshot, self._encoder.message(snapshot))
        return self._latest[1]
