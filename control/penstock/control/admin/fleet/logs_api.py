"""What replicas logged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from datetime import timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, status
from fastapi.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from penstock.control.admin.auth import Operator
from penstock.control.admin.resources import resources
from penstock.control.managers.fleet.replica_logs import (
    MOST_LINES,
    USUAL_LINES,
    LogRequest,
    ReplicaLogs,
)
from penstock.control.state.fleet.replica import ReplicaId

# A reader that takes nothing for so long gives its place to others.
TAKEN_WITHIN: Final = timedelta(minutes=1)
TEXT: Final[dict[int | str, dict[str, Any]]] = {
    status.HTTP_200_OK: {
        "description": "Its lines. Those that begin with `penstock: ` are ours: what is left out, "
        "and why it ends; with `penstock: error: ` where there is more that could not be had",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}


def logs_api(logs: ReplicaLogs, taken_within: timedelta = TAKEN_WITHIN) -> APIRouter:
    """The logs of replicas, for operators: engines write what they like there."""
    router = resources("/replicas", tag="cluster")

    @router.get("/{replica_id}/logs", response_class=StreamingResponse, responses=TEXT)
    async def read_log(
        replica_id: str,
        _: Operator,
        tail: Annotated[
            int, Query(ge=0, le=MOST_LINES, description="lines, the last of them, at most 1 MiB")
        ] = USUAL_LINES,
        previous: Annotated[
            bool, Query(description="of the process before the one that was started last")
        ] = False,
        follow: Annotated[
            bool, Query(description="and what it writes from now on, until it is stopped")
        ] = False,
    ) -> StreamingResponse:
        """What a replica wrote since it was last started; also of one that is gone, as long as its
        log is kept."""
        lines = logs.read(ReplicaId(replica_id), LogRequest(tail, previous, follow))
        first = await anext(lines)  # so that what goes wrong is told as an error
        return _Taken(first, lines, taken_within)

    return router


class _Taken(StreamingResponse):
    """Ends with its reader, or where that takes nothing any more; and then nothing is read."""

    def __init__(self, first: bytes, lines: AsyncGenerator[bytes, None], within: timedelta) -> None:
        super().__init__(_after(first, lines), media_type="text/plain")
        self._lines = lines
        self._within = within.total_seconds()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers."""

        async def patient(message: Message) -> None:
            async with asyncio.timeout(self._within):
                await send(message)

        async with aclosing(self._lines):
            with suppress(TimeoutError):
                await super().__call__(scope, receive, patient)


async def _after(first: bytes, lines: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    yield first
    async for each in lines:
        yield each
