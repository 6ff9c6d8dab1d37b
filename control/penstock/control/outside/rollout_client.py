"""Revisions of a deployment, over the admin API."""

from __future__ import annotations

from typing import Any

from penstock.control.admin.rollout.models import DeploymentModel
from penstock.control.admin.rollout.revision_models import RevisionModel, SettingsChangeModel
from penstock.control.outside.admin_transport import AdminTransport, quote


def reason_header(reason: str) -> dict[str, bytes]:
    """What tells why something is changed: in UTF-8, whatever headers were made for."""
    return {"x-penstock-reason": reason.encode()} if reason else {}


class RolloutClient(AdminTransport):
    """What replicas of a deployment were made of, and are to be made of."""

    async def revisions(self, name: str) -> list[RevisionModel]:
        """Those that are kept, newest first."""
        reply = await self.call("GET", f"/deployments/{quote(name)}/revisions")
        return self.read(reply, list[RevisionModel])

    async def settings_changes(self, name: str) -> list[SettingsChangeModel]:
        """Those that are kept, newest first."""
        reply = await self.call("GET", f"/deployments/{quote(name)}/settings")
        return self.read(reply, list[SettingsChangeModel])

    async def settings_back(
        self, name: str, *, to: int | None = None, reason: str = ""
    ) -> DeploymentModel:
        """Makes its settings again as they were after a change, or before the last one."""
        number = -1 if to is None else to
        return await self._changed(name, "rollback", reason, json={"settings": number})

    async def roll_back(
        self, name: str, *, to: int | None = None, reason: str = ""
    ) -> DeploymentModel:
        """Makes it of an earlier revision's template again."""
        return await self._changed(name, "rollback", reason, json={"revision": to})

    async def restart(self, name: str, *, reason: str = "") -> DeploymentModel:
        """Replaces every replica by a new one of the same template."""
        return await self._changed(name, "restart", reason)

    async def pause(self, name: str, *, reason: str = "") -> DeploymentModel:
        """Stops a rollout where it is."""
        return await self._changed(name, "pause", reason)

    async def resume(self, name: str, *, reason: str = "") -> DeploymentModel:
        """Goes on with a rollout that was paused, or has failed."""
        return await self._changed(name, "resume", reason)

    async def _changed(self, name: str, verb: str, reason: str, **more: Any) -> DeploymentModel:
        path = f"/deployments/{quote(name)}/{verb}"
        reply = await self.call("POST", path, headers=reason_header(reason), **more)
        return self.read(reply, DeploymentModel)
