"""Revisions of a deployment, over the admin API."""

from __future__ import annotations

from typing import Any

from penstock.control.admin.rollout.evidence_models import (
    DeploymentPolicyModel,
    NewRevisionEvidenceModel,
    RevisionEvidenceModel,
)
from penstock.control.admin.rollout.models import DeploymentModel
from penstock.control.admin.rollout.revision_models import RevisionModel, SettingsChangeModel
from penstock.control.outside.admin_transport import (
    AdminTransport,
    handing_over,
    over_canaries,
    quote,
)


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
        self, name: str, *, to: int | None = None, reason: str = "", **how: bool
    ) -> DeploymentModel:
        """Makes its settings again as they were after a change, or before the last one."""
        number = -1 if to is None else to
        body = {"settings": number}
        return await self._changed(name, "rollback", reason, json=body, **how)

    async def roll_back(
        self, name: str, *, to: int | None = None, reason: str = "", **how: bool
    ) -> DeploymentModel:
        """Makes it of an earlier revision's template again. `how`: abort_canary, hand_over."""
        body = {"revision": to}
        return await self._changed(name, "rollback", reason, json=body, **how)

    async def restart(self, name: str, *, reason: str = "", **how: bool) -> DeploymentModel:
        """Replaces every replica by a new one of the same template."""
        return await self._changed(name, "restart", reason, **how)

    async def pause(self, name: str, *, reason: str = "", **how: bool) -> DeploymentModel:
        """Stops a rollout where it is."""
        return await self._changed(name, "pause", reason, **how)

    async def resume(self, name: str, *, reason: str = "", **how: bool) -> DeploymentModel:
        """Goes on with a rollout that was paused, or has failed."""
        return await self._changed(name, "resume", reason, **how)

    async def revision_evidence(self, name: str, number: int) -> list[RevisionEvidenceModel]:
        """What was found of a revision's template, newest first."""
        reply = await self.call("GET", _evidence(name, number))
        return self.read(reply, list[RevisionEvidenceModel])

    async def put_revision_evidence(
        self, name: str, number: int, found: NewRevisionEvidenceModel
    ) -> RevisionEvidenceModel:
        """Keeps what was found of it."""
        reply = await self.call("PUT", _evidence(name, number), json=found.model_dump(mode="json"))
        return self.read(reply, RevisionEvidenceModel)

    async def deployment_policy(self) -> DeploymentPolicyModel:
        """What has to be found before clients have a template."""
        return self.read(await self.call("GET", "/deployment-policy"), DeploymentPolicyModel)

    async def set_deployment_policy(self, policy: DeploymentPolicyModel) -> DeploymentPolicyModel:
        """Asks for something else from now on."""
        reply = await self.call("PUT", "/deployment-policy", json=policy.model_dump())
        return self.read(reply, DeploymentPolicyModel)

    async def _changed(
        self,
        name: str,
        verb: str,
        reason: str,
        *,
        abort_canary: bool = False,
        hand_over: bool = False,
        json: Any = None,
    ) -> DeploymentModel:
        path, headers = f"/deployments/{quote(name)}/{verb}", reason_header(reason)
        params = over_canaries(abort=abort_canary) | handing_over(at_once=hand_over)
        reply = await self.call("POST", path, params=params, headers=headers, json=json)
        return self.read(reply, DeploymentModel)


def _evidence(name: str, number: int) -> str:
    return f"/deployments/{quote(name)}/revisions/{number}/evidence"
