"""Engines in the admin REST API, as a client sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from penstock.control.admin.rollout.engine_models import EngineModel
from penstock.control.outside.admin_transport import TIMEOUT, AdminTransport, quote
from penstock.control.outside.rollout_client import reason_header
from penstock.control.settings import START_LIMIT

# The head answers when it is ready, and a first start downloads its model.
START_TIMEOUT = httpx.Timeout(TIMEOUT.total_seconds(), read=2 * START_LIMIT.total_seconds())


class EngineClient(AdminTransport):
    """The calls about engines."""

    async def engines(self) -> list[EngineModel]:
        """Every engine."""
        return await self.pages_of("engines", EngineModel, lambda it: it.name)

    async def engine(self, name: str) -> EngineModel:
        """One engine, by name or id."""
        return await self.get(EngineModel, f"/engines/{quote(name)}")

    async def start_engine(
        self, asked: Mapping[str, Any], *, wait: bool = True, reason: str = ""
    ) -> EngineModel:
        """Starts an engine; returns once it is ready, where that is to be waited for."""
        return await self.post(
            EngineModel,
            "/engines",
            json=dict(asked),
            params={"wait": None if wait else "false"},
            headers=reason_header(reason),
            timeout=START_TIMEOUT,
        )

    async def end_engine(self, name: str, *, reason: str = "") -> None:
        """Ends an engine, by name or id."""
        await self.call("DELETE", f"/engines/{quote(name)}", headers=reason_header(reason))
