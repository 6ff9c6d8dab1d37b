"""What gateways decided about requests: listed, one by one, and as they end."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Query, status
from fastapi.responses import StreamingResponse
from pydantic import ConfigDict, TypeAdapter

from penstock.control.admin.auth import Viewer
from penstock.control.admin.fields import Text
from penstock.control.admin.observe.request_models import (
    ExplainedModel,
    LeftOutModel,
    RequestModel,
    RequestPage,
)
from penstock.control.admin.parameters import MOST
from penstock.control.admin.resources import resources
from penstock.control.admin.taken import TAKEN_WITHIN, Taken
from penstock.control.declared.moments import SHAPE, moment_said
from penstock.control.managers.observe.explain import ExplainManager
from penstock.control.managers.observe.tail import Followed
from penstock.control.state.observe.asking import LATEST, GatewayAnswer, Place, RequestFilter
from penstock.control.state.observe.record import microseconds
from penstock.control.state.observe.story import story_of
from penstock.control.state.tenancy.tokens import Role
from penstock.control.supervision.clock import Clock

SSE: Final = "text/event-stream"
STREAM: Final[dict[int | str, dict[str, Any]]] = {
    status.HTTP_200_OK: {
        "description": "Each request as it ends, as in the list; `event: gateways` says who"
        " tells of them, at once, with each change, and where there was nothing for ten seconds;"
        " `event: left_out` how many are not told, as they ended faster than they were taken",
        "content": {SSE: {"schema": {"type": "string"}}},
    }
}
USUAL: Final = 100
LONGEST_ID: Final = 512  # that a gateway takes from a caller
_GATEWAYS: Final = TypeAdapter(list[GatewayAnswer], config=ConfigDict(defer_build=True))

Status = Annotated[
    str,
    Query(pattern="^([1-5][0-9][0-9]|[45]xx)?$", description="as the client saw it: 404, 4xx, 5xx"),
]
Slower = Annotated[int, Query(ge=0, lt=LATEST, description="from its reading to its end")]
Reason = Annotated[
    Text, Query(description="the drop reason, the error's code, or why it was degraded")
]

Since = Annotated[str, Query(max_length=64, description=f"received since then: {SHAPE}")]
RequestId = Annotated[
    str, Path(min_length=1, max_length=LONGEST_ID, description="ours, its caller's, or its trace's")
]


def _wanted(
    deployment: Annotated[Text, Query(description="where it ended, or was asked for")] = "",
    tenant: Text = "",
    status: Status = "",
    reason: Reason = "",
    slower_than_ms: Slower = 0,
) -> RequestFilter:
    code = int(status.removesuffix("xx") or 0)
    return RequestFilter(deployment, tenant, code, reason, slower_than_ms)


Asked = Annotated[RequestFilter, Depends(_wanted)]


class RequestsApi:
    """The handlers of /requests; their docstrings are the API's documents. Read by anybody with a
    token: there is neither prompt nor answer in it."""

    def __init__(
        self, explain: ExplainManager, clock: Clock, taken_within: timedelta = TAKEN_WITHIN
    ) -> None:
        self._explain = explain
        self._clock = clock
        self._taken_within = taken_within

    def router(self) -> APIRouter:
        """The handlers on their paths."""
        router = resources("/requests", tag="requests")
        router.get("")(self.list_requests)
        router.get("/tail", response_class=StreamingResponse, responses=STREAM)(
            self.follow_requests
        )
        router.get("/{request_id:path}")(self.explain_request)
        return router

    async def list_requests(
        self,
        _: Viewer,
        wanted: Asked,
        since: Since = "",
        limit: Annotated[int, Query(ge=1, le=MOST, description="at most")] = USUAL,
        after: Annotated[
            str | None, Query(description="go on behind this: `next` of the page before")
        ] = None,
    ) -> RequestPage:
        """Requests that have ended, of all gateways, the newest first; who does not answer within
        two seconds is named. Each gateway keeps as many as it has memory for."""
        since_us = microseconds(moment_said("since", since, self._clock.now())) if since else 0
        asked = replace(wanted, since_us=since_us, limit=limit)
        found = await self._explain.listed(asked, None if after is None else Place.of(after))
        return RequestPage(
            requests=[RequestModel.of(kept) for kept in found.kept],
            next=found.next.text if found.next else None,
            gateways=list(found.gateways),
        )

    async def follow_requests(self, _: Viewer, wanted: Asked) -> StreamingResponse:
        """Requests as they end, as server-sent events."""
        told = _told(self._explain.follow(wanted))
        first = await anext(told)  # so that what goes wrong is told as an error
        return Taken(first, told, media_type=SSE, within=self._taken_within)

    async def explain_request(self, request_id: RequestId, caller: Viewer) -> ExplainedModel:
        """All that was decided about a request, with its inputs, and what that comes to in words.
        Where several have this id, of the one that it is our id of, else of the newest. The
        client's address is told to operators and admins."""
        found = await self._explain.found(request_id)
        newest, *others = found.kept
        sees_all = caller.role.includes(Role.OPERATOR)
        record = newest.record if sees_all else replace(newest.record, client="")
        return ExplainedModel(
            gateway=newest.gateway,
            record=record,
            story=story_of(record),
            namesakes=[each.record.request_id for each in others],
            gateways=list(found.gateways),
        )


async def _told(parts: AsyncGenerator[Followed, None]) -> AsyncGenerator[str, None]:
    async with aclosing(parts):
        async for part in parts:
            yield "".join(_events(part))


def _events(part: Followed) -> list[str]:
    told = [f"data: {RequestModel.of(kept).model_dump_json()}\n\n" for kept in part.kept]
    if part.left_out:
        gap = LeftOutModel(left_out=part.left_out)
        told.append(f"event: left_out\ndata: {gap.model_dump_json()}\n\n")
    if part.gateways is not None:
        said = _GATEWAYS.dump_json(list(part.gateways)).decode()
        told.append(f"event: gateways\ndata: {said}\n\n")
    return told
