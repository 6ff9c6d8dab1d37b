"""Canaries in the admin REST API, as a client sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.control.admin.canary.models import CanaryRunModel, CanaryStatusModel
from penstock.control.outside.admin_transport import AdminTransport, quote
from penstock.control.outside.rollout_client import reason_header


class CanaryClient(AdminTransport):
    """The calls about canaries."""

    async def canaries(self) -> list[CanaryRunModel]:
        """Every canary, those that have ended too."""
        return await self.pages_of("canaries", CanaryRunModel, lambda it: it.name)

    async def canary(self, name: str) -> CanaryStatusModel:
        """One, with both arms and what is missing."""
        return await self.get(CanaryStatusModel, _path(name))

    async def start_canary(
        self, asked: Mapping[str, Any], *, reason: str = "", dry_run: bool = False
    ) -> CanaryRunModel:
        """Gives a candidate its first share."""
        params, headers = {"dry_run": dry_run}, reason_header(reason)
        return await self.post(
            CanaryRunModel, "/canaries", json=dict(asked), params=params, headers=headers
        )

    async def move_canary(self, name: str, verb: str, *, reason: str = "") -> CanaryRunModel:
        """`verb`: pause, resume, promote or abort."""
        path = f"{_path(name)}/{verb}"
        return await self.post(CanaryRunModel, path, headers=reason_header(reason))

    async def delete_canary(self, name: str) -> None:
        """Forgets one that has ended."""
        await self.call("DELETE", _path(name))


def _path(name: str) -> str:
    return f"/canaries/{quote(name)}"
