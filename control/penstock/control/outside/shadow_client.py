"""Shadows in the admin REST API, as a client sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.control.admin.shadow.models import ShadowMadeModel, ShadowModel, ShadowReportModel
from penstock.control.outside.admin_transport import AdminTransport, quote


class ShadowClient(AdminTransport):
    """The calls about shadows."""

    async def shadows(self) -> list[ShadowModel]:
        """Every shadow."""
        return await self.pages_of("shadows", ShadowModel, lambda it: it.name)

    async def shadow(self, name: str) -> ShadowModel:
        """One shadow."""
        return await self.get(ShadowModel, _path(name))

    async def shadow_report(self, name: str) -> ShadowReportModel:
        """One with each check."""
        return await self.get(ShadowReportModel, f"{_path(name)}/report")

    async def create_shadow(self, asked: Mapping[str, Any], *, dry_run: bool) -> ShadowMadeModel:
        """Begins to repeat requests."""
        params = {"dry_run": dry_run}
        return await self.post(ShadowMadeModel, "/shadows", json=dict(asked), params=params)

    async def pause_shadow(self, name: str) -> ShadowModel:
        """Repeats nothing until it is resumed."""
        return await self.post(ShadowModel, f"{_path(name)}/pause")

    async def resume_shadow(self, name: str) -> ShadowModel:
        """Goes on."""
        return await self.post(ShadowModel, f"{_path(name)}/resume")

    async def delete_shadow(self, name: str) -> None:
        """Ends it, and forgets what it compared."""
        await self.call("DELETE", _path(name))


def _path(name: str) -> str:
    return f"/shadows/{quote(name)}"
