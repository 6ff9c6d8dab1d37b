"""What happened: listed, and followed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Query, status
from fastapi.responses import StreamingResponse
from pydantic import AwareDatetime

from penstock.control.admin.auth import Viewer
from penstock.control.admin.event_models import EventModel, GapModel
from penstock.control.admin.fields import Text
from penstock.control.admin.parameters import MOST
from penstock.control.admin.resources import resources
from penstock.control.errors import StoreUnavailable
from penstock.control.managers.events import EventManager, Followed
from penstock.control.state.events import EventKind, EventType, Wanted
from penstock.control.store.events import EventStore

SSE: Final = "text/event-stream"
STREAM: Final[dict[int | str, dict[str, Any]]] = {
    status.HTTP_200_OK: {
        "description": "Events by their ids, or as they come, and a `gap` where some are gone",
        "content": {SSE: {"schema": {"type": "string"}}},
    }
}
NEWEST: Final = 2**63 - 1  # that the store can tell
Id = Annotated[
    int | None,
    Query(ge=0, le=NEWEST, description="only behind this id: the last of the page before"),
]


def _wanted(
    kind: EventKind | None = None,
    name: Text = "",
    deployment: Annotated[Text, Query(description="that they concern")] = "",
    reason: Text = "",
    type: EventType | None = None,
    since: AwareDatetime | None = None,
) -> Wanted:
    return Wanted(kind or "", name, deployment, reason, type or "", since)


Asked = Annotated[Wanted, Depends(_wanted)]


def events_api(store: EventStore, events: EventManager) -> APIRouter:
    """Read by anybody with a token."""
    router = resources("/events", tag="events")

    @router.get("", response_model=list[EventModel], responses=STREAM)
    async def list_events(
        _: Viewer,
        wanted: Asked,
        limit: Annotated[int | None, Query(ge=1, le=MOST, description="at most")] = None,
        after: Id = None,
        last: Annotated[
            int | None, Query(ge=1, le=MOST, description="the newest so many alone")
        ] = None,
        accept: Annotated[str, Header(description=f"`{SSE}`: follow them")] = "",
        last_event_id: Annotated[
            int | None, Header(ge=0, le=NEWEST, description="as `after`")
        ] = None,
    ) -> list[EventModel] | StreamingResponse:
        """What happened in the last seven days, by id; as server-sent events what comes from now
        on, or all behind `after` or `Last-Event-ID`, and a `gap` where some of it is kept no
        longer. What happens again within an hour is one event, which counts, and has the id of
        the last time."""
        if SSE in accept:
            return await _followed(
                events, wanted, after if last_event_id is None else last_event_id
            )
        most = limit if last is None else last
        page = await store.events(wanted, after=after or 0, most=most, last=last is not None)
        return [EventModel.of(each) for each in page.events]

    return router


async def _followed(events: EventManager, wanted: Wanted, after: int | None) -> StreamingResponse:
    pages = events.follow(wanted, after)
    first = await anext(pages)  # so that what goes wrong is told as an error
    lines = _lines(first, pages)
    return StreamingResponse(lines, media_type=SSE, headers={"cache-control": "no-store"})


async def _lines(first: Followed, pages: AsyncGenerator[Followed, None]) -> AsyncIterator[str]:
    async with aclosing(pages):
        with suppress(StoreUnavailable):  # who follows asks again, from where it is
            yield _told(first)
            async for page in pages:
                yield _told(page)


def _told(page: Followed) -> str:
    """Some events, and where to go on: an id alone is no event, and says that somebody is there."""
    gap = GapModel(after=page.misses) if page.misses is not None else None
    parts = [f"event: gap\ndata: {gap.model_dump_json()}\n\n"] if gap else []
    parts += [
        f"id: {each.id}\ndata: {EventModel.of(each).model_dump_json()}\n\n" for each in page.events
    ]
    if not page.events or page.events[-1].id != page.reaches:
        parts.append(f"id: {page.reaches}\n\n")
    return "".join(parts)
