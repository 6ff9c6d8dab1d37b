"""Asks the comparer, which the head itself has started on its machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

import grpc

from penstock.control.errors import Code, NotFound, Unavailable
from penstock.control.outside.dialer import Dialer
from penstock.control.rpc.recording_wire import recording_order_message, recording_standing
from penstock.control.rpc.shadow_wire import order_message
from penstock.control.state.recording.recorded import RecordingOrder
from penstock.control.state.shadow.comparing import Account, Order, Standing, Standings
from penstock.v1 import comparer_pb2, comparer_pb2_grpc

# It counts a batch in milliseconds: one that takes longer to say anything hangs.
TIMEOUT: Final = timedelta(seconds=10)


class GrpcComparerClient:
    """The Comparer service at one address."""

    def __init__(self, address: str, dialer: Dialer) -> None:
        self._metadata = dialer.metadata
        self._channel = dialer.plain_channel(address, [("grpc.use_local_subchannel_pool", 1)])
        self._stub = comparer_pb2_grpc.ComparerStub(self._channel)  # type: ignore[no-untyped-call]

    async def keep(
        self,
        orders: Sequence[Order],
        recordings: Sequence[RecordingOrder],
        *,
        keep_others: bool,
    ) -> Standings:
        """Tells the shadows and recordings that there are; how each stands. Raises
        `Unavailable`."""
        request = comparer_pb2.ComparerOrders(
            shadows=map(order_message, orders),
            recordings=map(recording_order_message, recordings),
            keep_others=keep_others,
        )
        with _explained():
            reply = await self._stub.Keep(
                request, timeout=TIMEOUT.total_seconds(), metadata=self._metadata
            )
        return Standings(
            [Standing(s.uid, s.verdict, s.pairs, s.self_pairs) for s in reply.shadows],
            [recording_standing(each) for each in reply.recordings],
            reply.trouble,
        )

    async def account(self, uid: str, pairs_a_day: float, *, with_texts: bool) -> Account:
        """All that is known of one. Raises `unknown-shadow` and `Unavailable`."""
        request = comparer_pb2.ShadowReportRequest(
            uid=uid, pairs_a_day=pairs_a_day, with_texts=with_texts
        )
        with _explained(Code.UNKNOWN_SHADOW):
            reply = await self._stub.Report(
                request, timeout=TIMEOUT.total_seconds(), metadata=self._metadata
            )
        return Account(reply.json, reply.markdown, reply.html)

    async def recording(self, uid: str) -> AsyncIterator[bytes]:
        """A recording as a file, some lines at a time. Raises `unknown-recording` and
        `Unavailable`."""
        request = comparer_pb2.RecordingRequest(uid=uid)
        with _explained(Code.UNKNOWN_RECORDING):
            async for part in self._stub.ReadRecording(request, metadata=self._metadata):
                yield part.lines

    async def close(self) -> None:
        """Hangs up."""
        await self._channel.close(grace=None)


@contextmanager
def _explained(unknown: Code | None = None) -> Iterator[None]:
    """What went wrong, as an error of ours; `unknown`: that it does not know what was asked for."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        if unknown and error.code() is grpc.StatusCode.NOT_FOUND:
            raise NotFound(str(error.details()), unknown) from error
        raise Unavailable(f"the comparer does not answer: {error.details()}") from error
