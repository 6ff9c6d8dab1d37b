"""What replicas logged."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, status
from fastapi.responses import StreamingResponse

from penstock.control.admin.auth import Operator
from penstock.control.admin.resources import resources
from penstock.control.admin.taken import TAKEN_WITHIN, Taken
from penstock.control.managers.fleet.replica_logs import (
    MOST_LINES,
    USUAL_LINES,
    LogRequest,
    ReplicaLogs,
)
from penstock.control.state.fleet.replica import ReplicaId

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
        return Taken(first, lines, media_type="text/plain", within=taken_within)

    return router
