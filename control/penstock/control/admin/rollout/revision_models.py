"""Revisions of a deployment as the admin API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from penstock.control.admin.derived import Derived, Shown, derived
from penstock.control.state.rollout.deployment import Deployment
from penstock.control.state.rollout.revision import Revision, RevisionState
from penstock.control.state.rollout.template import Template


@derived(Template)
class TemplateModel(Derived):
    """What a replica is made of."""


class RevisionModel(Shown):
    """What a deployment's replicas were made of, since when, by whom, and how it went."""

    number: int = Field(description="grows with each change of what replicas are made of")
    current: bool = Field(description="new replicas are made of it")
    state: RevisionState
    template_digest: str = Field(description="what its replicas are made of: equal, the same")
    spec: TemplateModel
    at: datetime
    by: str = Field(description="the name of a token; empty: older than what is kept")
    reason: str
    cause: str = Field(description="why it failed")
    failed_replica: str = Field("", description="that it failed by")
    undoes: int = Field(description="the revision that failed, whose place it took; 0: none")

    @classmethod
    def of(cls, deployment: Deployment, revision: Revision) -> RevisionModel:
        """A revision as the API shows it."""
        return cls.drawn(
            revision,
            current=revision is deployment.revision,
            spec=TemplateModel.showing(revision.template),
        )


class RollbackModel(BaseModel):
    """Where to go back to."""

    model_config = ConfigDict(extra="forbid")

    revision: Annotated[StrictInt, Field(ge=1)] | None = Field(
        None, description="its number; without: the last before the present one that served"
    )
