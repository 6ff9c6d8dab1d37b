"""What the admin API takes and gives of adapter versions, and of what was found out about them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AwareDatetime,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
)

from penstock.adapters.adapter import AdapterRef, BadAdapterRef
from penstock.adapters.promotion import PROMOTED, Evidence, PromotionPolicy
from penstock.adapters.version import AdapterVersion, Digest, VersionState
from penstock.control.admin.derived import Model, Shown
from penstock.control.admin.fields import Count, Report, Text, one_of
from penstock.control.errors import InvalidInput
from penstock.control.state.adapters.registry import StoredEvidence
from penstock.control.state.cluster import ClusterView

if TYPE_CHECKING:
    # Of the head: who calls the API does not import it.
    from penstock.control.managers.adapters.versions import NewAdapter


def _number_as_text(value: object) -> object:
    return str(value) if type(value) is int else value


Version = Annotated[
    Text,
    BeforeValidator(_number_as_text),
    Field(description="short number or label; it means these bytes for ever", examples=["2"]),
]


class AdapterManifestModel(Model):
    """What a new version is called, and what it was made for."""

    model_config = ConfigDict(extra="forbid")

    name: Text = Field(examples=["pirate"])
    version: Version
    base: Text = Field(
        description="a deployment, or the model that one serves", examples=["penstock-mini"]
    )
    labels: dict[Text, Text] = Field(default_factory=dict, examples=[{"run": "2026-11-20"}])

    def to_spec(self) -> NewAdapter:
        """What the manager is asked for."""
        from penstock.control.managers.adapters.versions import NewAdapter

        return NewAdapter(self.name, self.version, self.base, self.labels)


class NewAdapterModel(AdapterManifestModel):
    """A version to register from a source that the head can read."""

    source: Text = Field(
        description="absolute directory on the head's machine, s3://bucket/prefix, "
        "hf:org/name[@revision] of the Hugging Face cache, or a name that comes with Penstock",
        examples=["/models/pirate-lora", "s3://models/pirate/2", "penstock-mini/pirate"],
    )


class AdapterFileModel(Shown):
    """One file of an adapter."""

    name: str
    sha256: str
    bytes: int


class AdapterModel(Shown):
    """An adapter version: immutable but for its state."""

    adapter: str = Field(description="name@version, as requests, logs and headers say it")
    name: str
    version: str
    digest: str = Field(description="SHA-256 of weights and config: equal digests, equal answers")
    family: str = Field(description="the model that it was made for")
    state: str = one_of(*VersionState)
    rank: int
    modules: list[str] = Field(description="that it changes")
    bytes: int
    files: list[AdapterFileModel]
    source: str
    labels: dict[str, str]
    registered_at: datetime
    registered_by: str
    aliases: list[str] = Field(description="deployment:alias that name it now")

    @classmethod
    def of(cls, view: ClusterView, version: AdapterVersion) -> AdapterModel:
        """A version as the API shows it."""
        manifest = version.manifest
        files = [AdapterFileModel.drawn(file, bytes=file.size) for file in manifest.files]
        return cls.drawn(
            manifest,
            version.ref,
            adapter=str(version.ref),
            state=version.state,
            bytes=manifest.size,
            files=files,
            aliases=view.adapters.naming(version.ref),
        )


class PromoteModel(Model):
    """Where a version is to come."""

    model_config = ConfigDict(extra="forbid")

    to: Literal["canary", "live"]

    @property
    def state(self) -> VersionState:
        """The state that it is to have."""
        return VersionState(self.to)


class NewEvidenceModel(Model):
    """What an evaluation found of a version."""

    model_config = ConfigDict(extra="forbid")

    kind: Text = Field(examples=["adapter-regression"])
    passed: StrictBool = Field(description="its verdict, by the thresholds that it declared")
    at: AwareDatetime
    digest: Text = Field(description="of the bytes that were tried")
    family: Text = Field(description="of the models that they were tried on")
    against: Text | None = Field(None, description="name@version that it was compared with")
    dataset: Text = Field("", description="SHA-256 of it")
    report: Report | None = Field(None, description="whatever a person should see")

    def to_evidence(self) -> Evidence:
        """What the rules go by. Raises `InvalidInput`."""
        try:
            against = AdapterRef.parse(self.against) if self.against else None
        except BadAdapterRef as error:
            raise InvalidInput(f"against: {error}") from None
        told = self.model_dump(include={"family", "kind", "passed", "at", "dataset"})
        return Evidence(of=Digest(self.digest), against=against, **told)


class EvidenceModel(Shown):
    """Evidence that is kept; `report` only where one of them is asked for."""

    id: str
    adapter: str
    kind: str
    passed: bool
    at: datetime
    digest: str
    family: str
    against: str | None
    dataset: str
    has_report: bool
    report: dict[str, Any] | None = None

    @classmethod
    def of(cls, told: StoredEvidence, report: dict[str, Any] | None = None) -> EvidenceModel:
        """Evidence as the API shows it."""
        evidence = told.evidence
        return cls.drawn(
            evidence,
            id=told.id,
            adapter=str(told.ref),
            digest=evidence.of,
            against=str(evidence.against) if evidence.against else None,
            has_report=bool(told.report),
            report=report,
        )


class WhereModel(Shown):
    """An adapter version on one replica."""

    replica: str
    deployment: str
    node: str
    state: str = one_of("loaded", "failed", "wanted", "elsewhere")
    kept: bool = Field(description="it is to be there before anybody asks; else it is a guest")
    pinned: bool
    reason: str = Field(description="why its load failed there; empty: it did not")


class AdapterPolicyModel(Model):
    """What a promotion asks for."""

    model_config = ConfigDict(extra="forbid")

    evidence_for: list[Literal["canary", "live"]] = Field(
        default_factory=list, description="states that no version comes to without evidence"
    )
    kind: Text = Field("adapter-regression", description="of the evidence")
    not_older_than_hours: Count = Field(0, description="0: as old as it may be")

    def to_policy(self) -> PromotionPolicy:
        """The policy that this asks for."""
        age = timedelta(hours=self.not_older_than_hours) if self.not_older_than_hours else None
        states = frozenset(VersionState(state) for state in self.evidence_for)
        return PromotionPolicy(states, self.kind, age)

    @classmethod
    def of(cls, policy: PromotionPolicy) -> AdapterPolicyModel:
        """A policy as the API shows it."""
        age = policy.not_older_than
        return cls(
            evidence_for=[s.value for s in PROMOTED if s in policy.evidence_for],  # type: ignore[misc]
            kind=policy.kind,
            not_older_than_hours=int(age.total_seconds() // 3600) if age is not None else 0,
        )
