"""Evidence of revisions, and the policy that asks for it."""

from __future__ import annotations

from fastapi import APIRouter, Response, status

from penstock.control.admin.auth import Viewer
from penstock.control.admin.parameters import Paged
from penstock.control.admin.resources import resources
from penstock.control.admin.rollout.evidence_models import (
    DeploymentPolicyModel,
    NewRevisionEvidenceModel,
    RevisionEvidenceModel,
)
from penstock.control.admin.writes import Change, tagged
from penstock.control.managers.rollout.evidence import EvidenceManager


class RevisionEvidenceApi:
    """The handlers; their docstrings are the API's documents."""

    def __init__(self, evidence: EvidenceManager) -> None:
        self._evidence = evidence

    def router(self) -> APIRouter:
        """The handlers on their paths."""
        router = resources("/deployments/{name}/revisions/{number}/evidence", tag="deployments")
        router.get("")(self.list_evidence)
        router.put("", status_code=status.HTTP_201_CREATED)(self.put_evidence)
        router.get("/{evidence_id}")(self.get_evidence)
        return router

    async def list_evidence(
        self, name: str, number: int, _: Viewer, page: Paged
    ) -> list[RevisionEvidenceModel]:
        """What was found of a revision's template, in whatever deployment, the newest first."""
        found = self._evidence.of(name, number)
        return [RevisionEvidenceModel.of(each) for each in page.along(found, lambda it: it.id)]

    async def put_evidence(
        self, name: str, number: int, body: NewRevisionEvidenceModel, write: Change
    ) -> RevisionEvidenceModel:
        """Keeps what an evaluation found of a revision."""
        write.tell(told := await self._evidence.add(name, number, body.to_found(), write))
        return RevisionEvidenceModel.of(told, body.report)

    async def get_evidence(
        self, name: str, number: int, evidence_id: str, _: Viewer, response: Response
    ) -> RevisionEvidenceModel:
        """One finding, with its report."""
        told, report = await self._evidence.one(name, number, evidence_id)
        tagged(response, told)
        return RevisionEvidenceModel.of(told, report)


def deployment_policy_api(evidence: EvidenceManager) -> APIRouter:
    """The handlers of /deployment-policy."""
    router = resources("/deployment-policy", tag="deployments")

    @router.get("")
    async def get_deployment_policy(_: Viewer, response: Response) -> DeploymentPolicyModel:
        """What has to be found before clients have a template."""
        tagged(response, evidence.policy)
        return DeploymentPolicyModel.of(evidence.policy)

    @router.put("")
    async def put_deployment_policy(
        body: DeploymentPolicyModel, write: Change
    ) -> DeploymentPolicyModel:
        """Asks for something else from now on; what clients have stays so."""
        write.tell(policy := await evidence.set_policy(body.to_policy(), write))
        return DeploymentPolicyModel.of(policy)

    return router
