"""Revisions of a deployment as the admin API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StrictInt

from penstock.control.admin.derived import Derived, Model, Shown, derived
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


class SettingsChangeModel(Shown):
    """A change of settings that took no new replicas: which, from what to what."""

    number: int = Field(description="grows with each change of settings")
    at: datetime
    by: str
    reason: str
    before: dict[str, Any] = Field(description="the settings that differ, as they were")
    after: dict[str, Any]


class RollbackModel(Model):
    """Where to go back to: a revision, or settings."""

    model_config = ConfigDict(extra="forbid")

    revision: Annotated[StrictInt, Field(ge=1)] | None = Field(
        None, description="its number; without: the last before the present one that served"
    )
    settings: Annotated[StrictInt, Field(ge=-1)] | None = Field(
        None,
        description="in its place: the number of the change after which settings were as they are "
        "to be again; 1 less than the oldest that is kept: before that; -1: before the last",
    )
