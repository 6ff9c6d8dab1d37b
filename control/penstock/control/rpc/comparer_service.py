"""Comparer: is told of shadows by the head, and tells how they stand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

import grpc

from penstock.control.errors import NotFound
from penstock.control.rpc.recording_wire import recording_order
from penstock.control.rpc.shadow_service import Ask
from penstock.control.rpc.shadow_wire import order
from penstock.control.state.recording.recorded import RecordingOrder, RecordingStanding
from penstock.control.state.shadow.comparing import Account, Order, Standing
from penstock.v1 import comparer_pb2, comparer_pb2_grpc, shadow_pb2

Context = grpc.aio.ServicerContext[Any, Any]


class Comparing(Protocol):
    """Who compares."""

    trouble: str
    """Why it cannot count, as the end of a sentence; empty: it can."""

    async def count(self, batch: shadow_pb2.ShadowBatch, ask: Ask) -> None:
        """Counts what a gateway tells; it is on disk when this returns. What else is to be known
        of its pairs the gateway is to `ask`, later."""

    async def keep(
        self,
        orders: Sequence[Order],
        recordings: Sequence[RecordingOrder] = (),
        *,
        keep_others: bool,
    ) -> Sequence[Standing]:
        """These are the shadows and recordings that there are; how each shadow stands."""

    async def recorded(self) -> Sequence[RecordingStanding]:
        """How each recording stands."""

    def recording(self, uid: str) -> AsyncIterator[bytes]:
        """A recording as a file, some lines at a time. Raises `unknown-recording`."""

    async def account(self, uid: str, pairs_a_day: float, *, with_texts: bool = False) -> Account:
        """All that is known of one. Raises `unknown-shadow`."""


class ComparerService(comparer_pb2_grpc.ComparerServicer):
    """comparer.proto, service Comparer."""

    def __init__(self, comparing: Comparing) -> None:
        self._comparing = comparing

    async def Keep(
        self, request: comparer_pb2.ComparerOrders, context: Context
    ) -> comparer_pb2.ComparerStandings:
        """Takes the shadows that there are."""
        orders = [order(each) for each in request.shadows]
        recordings = [recording_order(each) for each in request.recordings]
        found = await self._comparing.keep(orders, recordings, keep_others=request.keep_others)
        recorded = await self._comparing.recorded()
        return comparer_pb2.ComparerStandings(
            shadows=[comparer_pb2.ShadowStanding(**each._asdict()) for each in found],
            recordings=[comparer_pb2.RecordingStanding(**each._asdict()) for each in recorded],
            trouble=self._comparing.trouble,
        )

    async def Report(
        self, request: comparer_pb2.ShadowReportRequest, context: Context
    ) -> comparer_pb2.ShadowReport:
        """Tells all of one."""
        try:
            found = await self._comparing.account(
                request.uid, request.pairs_a_day, with_texts=request.with_texts
            )
        except NotFound as error:
            await context.abort(grpc.StatusCode.NOT_FOUND, str(error))
        return comparer_pb2.ShadowReport(**found._asdict())

    async def ReadRecording(
        self, request: comparer_pb2.RecordingRequest, context: Context
    ) -> AsyncIterator[comparer_pb2.RecordingPart]:
        """Tells all that one recorded."""
        try:
            async for lines in self._comparing.recording(request.uid):
                yield comparer_pb2.RecordingPart(lines=lines)
        except NotFound as error:
            await context.abort(grpc.StatusCode.NOT_FOUND, str(error))
