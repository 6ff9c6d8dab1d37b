"""Revisions of a deployment, over the admin API."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.control.admin.rollout.evidence_models import (
    DeploymentPolicyModel,
    NewRevisionEvidenceModel,
    RevisionEvidenceModel,
)
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
        return await self.get(list[RevisionModel], f"/deployments/{quote(name)}/revisions")

    async def settings_changes(self, name: str) -> list[SettingsChangeModel]:
        """Those that are kept, newest first."""
        return await self.get(list[SettingsChangeModel], f"/deployments/{quote(name)}/settings")

    async def move_rollout(
        self,
        name: str,
        verb: str,
        body: Mapping[str, int | None] | None = None,
        *,
        reason: str = "",
        abort_canary: bool = False,
        hand_over: bool = False,
    ) -> DeploymentModel:
        """`verb`: rollback, to a revision or to settings that `body` names, restart, pause or
        resume."""
        path, headers = f"/deployments/{quote(name)}/{verb}", reason_header(reason)
        params = {"abort_canary": abort_canary, "hand_over": hand_over}
        return await self.post(DeploymentModel, path, json=body, params=params, headers=headers)

    async def revision_evidence(self, name: str, number: int) -> list[RevisionEvidenceModel]:
        """What was found of a revision's template, newest first."""
        return await self.get(list[RevisionEvidenceModel], _evidence(name, number))

    async def put_revision_evidence(
        self, name: str, number: int, found: NewRevisionEvidenceModel
    ) -> RevisionEvidenceModel:
        """Keeps what was found of it."""
        return await self.put(
            RevisionEvidenceModel,
            _evidence(name, number),
            json=found.model_dump(mode="json"),
        )

    async def deployment_policy(self) -> DeploymentPolicyModel:
        """What has to be found before clients have a template."""
        return await self.get(DeploymentPolicyModel, "/deployment-policy")

    async def set_deployment_policy(self, policy: DeploymentPolicyModel) -> DeploymentPolicyModel:
        """Asks for something else from now on."""
        return await self.put(DeploymentPolicyModel, "/deployment-policy", json=policy.model_dump())


def _evidence(name: str, number: int) -> str:
    return f"/deployments/{quote(name)}/revisions/{number}/evidence"
