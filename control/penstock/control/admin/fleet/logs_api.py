"""What replicas logged, and what all processes did."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, status
from fastapi.responses import StreamingResponse
from pydantic import AwareDatetime

from penstock.control.admin.auth import Operator
from penstock.control.admin.fields import Text
from penstock.control.admin.fleet.log_models import LogEntryModel
from penstock.control.admin.resources import resources
from penstock.control.admin.taken import TAKEN_WITHIN, Taken
from penstock.control.machine_logs.lines import micros, written
from penstock.control.machine_logs.values import LogQuestion
from penstock.control.managers.fleet.fleet_logs import FleetLogs, FleetNote, Told
from penstock.control.managers.fleet.replica_logs import (
    MOST_LINES,
    USUAL_LINES,
    LogRequest,
    ReplicaLogs,
)
from penstock.control.state.fleet.replica import ReplicaId

NDJSON: Final = "application/x-ndjson"
TEXT: Final[dict[int | str, dict[str, Any]]] = {
    status.HTTP_200_OK: {
        "description": "Its lines. Those that begin with `penstock: ` are ours: what is left out, "
        "and why it ends; with `penstock: error: ` where there is more that could not be had",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}

ENTRIES: Final[dict[int | str, dict[str, Any]]] = {
    status.HTTP_200_OK: {
        "description": "An object on each line: a line of a log, or what is to be known of them;"
        " and empty lines, which say that somebody is there",
        "content": {NDJSON: {"schema": LogEntryModel.model_json_schema()}},
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


def fleet_logs_api(logs: FleetLogs, taken_within: timedelta = TAKEN_WITHIN) -> APIRouter:
    """The logs of all processes, likewise."""
    router = resources("/logs", tag="cluster")

    @router.get("", response_class=StreamingResponse, responses=ENTRIES)
    async def read_logs(
        _: Operator,
        since: Annotated[AwareDatetime | None, Query(description="nothing from before")] = None,
        request: Annotated[
            str,
            Query(max_length=512, description="that lines name: by our id, or by its client's"),
        ] = "",
        of: Annotated[
            Text, Query(description="a process's name, or a deployment's: of its alone")
        ] = "",
        tail: Annotated[
            int, Query(ge=0, le=MOST_LINES, description="lines, the last of them, at most 16 MiB")
        ] = USUAL_LINES,
        follow: Annotated[bool, Query(description="and what is written from now on")] = False,
    ) -> StreamingResponse:
        """What heads, gateways, node agents, replicas, router programs and the comparer wrote, by
        time."""
        since_us = micros(since) if since else 0
        asked = LogQuestion(max(0, since_us), (request,) if request else (), tail, follow, of)
        entries = _entries(logs.read(asked))
        first = await anext(entries)  # so that what goes wrong is told as an error
        return Taken(first, entries, media_type=NDJSON, within=taken_within)

    return router


async def _entries(
    told: AsyncGenerator[Sequence[Told], None],
) -> AsyncGenerator[bytes, None]:
    async with aclosing(told):
        async for some in told:
            # An empty line, which says that somebody is there: nothing would not be sent.
            lines = (f"{_entry(each).model_dump_json()}\n".encode() for each in some)
            yield b"".join(lines) or b"\n"


def _entry(told: Told) -> LogEntryModel:
    if isinstance(told, FleetNote):
        return LogEntryModel(error=told.text) if told.is_error else LogEntryModel(note=told.text)
    who, line = told.line.author, told.line
    return LogEntryModel(
        time=written(line.time_us),
        level=line.level,
        process=who.kind,
        name=who.name,
        node=told.node,
        line=line.text,
    )
