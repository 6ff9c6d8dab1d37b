"""Shadow: hears from gateways what shadows answered."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from penstock.v1 import shadow_pb2, shadow_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]


class ShadowService(shadow_pb2_grpc.ShadowServicer):
    """shadow.proto, service Shadow. `count` returns once a batch is on disk."""

    def __init__(self, count: Callable[[shadow_pb2.ShadowBatch], Awaitable[None]]) -> None:
        self._count = count

    async def Record(
        self, requests: AsyncIterator[shadow_pb2.ShadowBatch], context: Context
    ) -> AsyncIterator[shadow_pb2.ShadowRecorded]:
        """Counts batches in the order in which they come."""
        async for batch in requests:
            await self._count(batch)
            yield shadow_pb2.ShadowRecorded(number=batch.number)
