"""What happened, over the admin API."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping

from penstock.control.admin.event_models import EventModel, GapModel
from penstock.control.outside.admin_transport import AdminTransport
from penstock.control.outside.server_sent import SILENCE, SSE, server_sent


class EventClient(AdminTransport):
    """Events: those that are kept, and those that come."""

    async def events(self, wanted: Mapping[str, str], *, last: int) -> list[EventModel]:
        """The newest so many, oldest first."""
        return await self.get(list[EventModel], "/events", params={**wanted, "last": str(last)})

    async def follow_events(
        self, wanted: Mapping[str, str], after: int | None
    ) -> AsyncGenerator[EventModel | GapModel | int, None]:
        """What is behind an id and what comes, until the head ends; a number: behind which id to
        go on. Raises `Unavailable`."""
        asked, headers = {**wanted, "after": after}, {"accept": SSE}
        limit = SILENCE.total_seconds()
        parts = self.download("/events", params=asked, headers=headers, timeout=limit)
        async for said in server_sent(parts):
            yield _told(said)


def _told(said: Mapping[str, str]) -> EventModel | GapModel | int:
    if "data" not in said:
        return int(said["id"])
    kind = GapModel if said.get("event") == "gap" else EventModel
    return kind.model_validate_json(said["data"])
