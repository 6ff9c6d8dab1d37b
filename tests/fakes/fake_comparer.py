"""A comparer that keeps what gateways tell it, over real gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc

from penstock.v1 import shadow_pb2 as v1
from penstock.v1 import shadow_pb2_grpc as services
from tests.fakes.fake_replica import authorization_of
from tests.fakes.fake_server import FakeServer


class FakeComparer(FakeServer, services.ShadowServicer):
    """Serves from `async with` on."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[v1.ShadowPair] = []  # each once, however often it came
        self.counts: dict[tuple[str, str], int] = {}  # by rule and outcome
        self.authorizations: list[str] = []  # of each stream
        self.questions: list[v1.ShadowQuestion] = []  # asked with the next batch that has pairs
        self.replies: list[v1.ShadowReply] = []
        self.counting = asyncio.Event()  # while it is not set, nothing is acknowledged
        self.counting.set()
        self._seen: set[tuple[str, int]] = set()

    def _serve_on(self, server: grpc.aio.Server) -> None:
        services.add_ShadowServicer_to_server(self, server)  # type: ignore[no-untyped-call]

    async def Record(
        self,
        request_iterator: AsyncIterator[v1.ShadowBatch],
        context: grpc.aio.ServicerContext[v1.ShadowBatch, v1.ShadowRecorded],
    ) -> AsyncIterator[v1.ShadowRecorded]:
        """Takes batches, and acknowledges each."""
        self.authorizations.append(authorization_of(context))
        async for batch in request_iterator:
            self.replies.extend(batch.replies)
            if not batch.number:
                continue
            if (batch.instance, batch.number) not in self._seen:
                self.pairs.extend(batch.pairs)
            self._seen.add((batch.instance, batch.number))
            self.counts |= {(c.rule, c.outcome): c.count for c in batch.counts}
            await self.counting.wait()
            yield v1.ShadowRecorded(number=batch.number)
            if batch.pairs and self.questions:
                asked, self.questions = self.questions, []
                yield v1.ShadowRecorded(questions=asked)
