"""What was decided about requests, over the admin API."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from urllib.parse import quote

from pydantic import ConfigDict, TypeAdapter

from penstock.control.admin.observe.request_models import (
    ExplainedModel,
    LeftOutModel,
    RequestModel,
    RequestPage,
)
from penstock.control.outside.admin_transport import AdminTransport
from penstock.control.outside.server_sent import SILENCE, server_sent
from penstock.control.state.observe.asking import GatewayAnswer

TailEvent = RequestModel | LeftOutModel | list[GatewayAnswer]
TAIL = "tail"  # no request can be asked for by this id
_GATEWAYS = TypeAdapter(list[GatewayAnswer], config=ConfigDict(defer_build=True))


class RequestClient(AdminTransport):
    """Requests that have ended, and those that end."""

    async def requests(self, wanted: Mapping[str, str], *, limit: int) -> RequestPage:
        """The newest so many."""
        return await self.get(RequestPage, "/requests", params={**wanted, "limit": str(limit)})

    async def explain(self, request_id: str) -> ExplainedModel:
        """All of one, by our id, its caller's or its trace's. Raises `NotFound`."""
        return await self.get(ExplainedModel, f"/requests/{quote(request_id, safe='')}")

    async def follow_requests(self, wanted: Mapping[str, str]) -> AsyncGenerator[TailEvent, None]:
        """Requests as they end, and first of all which gateways tell of theirs, until the head
        ends. Raises `Unavailable`."""
        parts = self.download(
            f"/requests/{TAIL}", params=dict(wanted), timeout=SILENCE.total_seconds()
        )
        async for said in server_sent(parts):
            yield _told(said)


def _told(said: Mapping[str, str]) -> TailEvent:
    match said.get("event"):
        case "gateways":
            return _GATEWAYS.validate_json(said["data"])
        case "left_out":
            return LeftOutModel.model_validate_json(said["data"])
    return RequestModel.model_validate_json(said["data"])
