"""What the admin API takes and gives of evidence of revisions."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from pydantic import AwareDatetime, ConfigDict, Field, StrictBool

from penstock.control.admin.derived import Model, Shown
from penstock.control.admin.fields import Count, Report, Text
from penstock.control.state.rollout.kept_evidence import DeploymentPolicy, Stage, TemplateEvidence

if TYPE_CHECKING:
    # Of the head: who calls the API does not import it.
    from penstock.control.managers.rollout.evidence import Found


class NewRevisionEvidenceModel(Model):
    """What an evaluation found of a revision."""

    model_config = ConfigDict(extra="forbid")

    kind: Text = Field(min_length=1, examples=["quantization-regression"])
    passed: StrictBool = Field(description="its verdict, by the thresholds that it declared")
    at: AwareDatetime
    report: Report | None = Field(None, description="whatever a person should see")

    def to_found(self) -> Found:
        """What is kept."""
        from penstock.control.managers.rollout.evidence import Found

        return Found(self.kind, self.passed, self.at, self.report)


class RevisionEvidenceModel(Shown):
    """Evidence that is kept, of all revisions of the same template; `report` only where one of
    them is asked for."""

    id: str
    deployment: str = Field(description="that it was told of")
    revision: int = Field(description="of it")
    template_digest: str
    kind: str
    passed: bool
    at: datetime
    has_report: bool
    report: dict[str, Any] | None = None

    @classmethod
    def of(
        cls, told: TemplateEvidence, report: dict[str, Any] | None = None
    ) -> RevisionEvidenceModel:
        """Evidence as the API shows it."""
        has_report, digest = bool(told.report), told.digest
        return cls.drawn(told, template_digest=digest, has_report=has_report, report=report)


class DeploymentPolicyModel(Model):
    """What has to be found of a template before clients have it."""

    model_config = ConfigDict(extra="forbid")

    evidence_for: list[Literal["canary", "live"]] = Field(
        default_factory=list,
        description="canary: before a share of the clients has it; live: before all have it,"
        " without a canary that passed",
    )
    kind: Text = Field("", description="of the evidence; empty: any")
    not_older_than_hours: Count = Field(0, description="0: as old as it may be")

    def to_policy(self) -> DeploymentPolicy:
        """The policy that this asks for."""
        stages = tuple(stage for stage in Stage if stage.value in self.evidence_for)
        return DeploymentPolicy(stages, self.kind, self.not_older_than_hours)

    @classmethod
    def of(cls, policy: DeploymentPolicy) -> DeploymentPolicyModel:
        """A policy as the API shows it."""
        return cls(
            evidence_for=[stage.value for stage in policy.evidence_for],
            kind=policy.kind,
            not_older_than_hours=policy.not_older_than_hours,
        )
