"""Asks the comparer, which the head itself has started on its machine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import grpc

from penstock.control.errors import Unavailable, UnknownShadow
from penstock.control.outside.dialer import Dialer
from penstock.control.rpc.shadow_wire import order_message
from penstock.control.state.shadow.comparing import Account, Order, Standing
from penstock.v1 import comparer_pb2, comparer_pb2_grpc

# It counts a batch in milliseconds: one that takes longer to say anything hangs.
TIMEOUT: Final = timedelta(seconds=10)


class GrpcComparerClient:
    """The Comparer service at one address."""

    def __init__(self, address: str, dialer: Dialer) -> None:
        self._metadata = dialer.metadata
        self._channel = dialer.plain_channel(address, [("grpc.use_local_subchannel_pool", 1)])
        self._stub = comparer_pb2_grpc.ComparerStub(self._channel)  # type: ignore[no-untyped-call]

    async def keep(self, orders: Sequence[Order], *, keep_others: bool) -> list[Standing]:
        """Tells the shadows that there are; how each of them stands. Raises `Unavailable`."""
        request = comparer_pb2.ComparerOrders(
            shadows=map(order_message, orders), keep_others=keep_others
        )
        try:
            reply = await self._stub.Keep(
                request, timeout=TIMEOUT.total_seconds(), metadata=self._metadata
            )
        except grpc.aio.AioRpcError as error:
            raise Unavailable(f"the comparer does not answer: {error.details()}") from error
        return [Standing(s.uid, s.verdict, s.pairs, s.self_pairs) for s in reply.shadows]

    async def account(self, uid: str, pairs_a_day: float) -> Account:
        """All that is known of one. Raises `UnknownShadow` and `Unavailable`."""
        request = comparer_pb2.ShadowReportRequest(uid=uid, pairs_a_day=pairs_a_day)
        try:
            reply = await self._stub.Report(
                request, timeout=TIMEOUT.total_seconds(), metadata=self._metadata
            )
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                raise UnknownShadow(str(error.details())) from error
            raise Unavailable(f"the comparer does not answer: {error.details()}") from error
        return Account(reply.json, reply.markdown, reply.html)

    async def close(self) -> None:
        """Hangs up."""
        await self._channel.close(grace=None)
