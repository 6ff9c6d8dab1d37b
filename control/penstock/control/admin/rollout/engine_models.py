"""Engines, as the admin API takes and shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from penstock.control.admin.derived import Derived, Shown, derived
from penstock.control.admin.fields import Text
from penstock.control.admin.rollout.models import Setting, SpecModel
from penstock.control.declared.codec import Codec
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import LIVE, Replica, StartKind
from penstock.control.state.rollout.deployment import Deployment, DeploymentSpec
from penstock.control.state.rollout.engines import EngineTerms, id_of
from penstock.control.state.rollout.status import DeploymentPhase, status_of
from penstock.control.state.rollout.template import Template

_TERMS = Codec(EngineTerms)


@derived(
    EngineTerms,
    Template,
    without=("max_adapters", "max_adapter_rank", "microserving", "microserving_rest"),
    engine=(Text, {"default": "vllm"}),
    engine_args=dict[Text, Setting],
)
class NewEngine(Derived):
    """An engine to start."""

    def to_spec(self, name: str) -> DeploymentSpec:
        """The spec of its deployment; raises InvalidSpec."""
        made_of = {"engine": self.engine, "model": self.model, "engine_args": self.engine_args}
        return SpecModel.model_validate(made_of).to_spec(name)

    def to_terms(self) -> EngineTerms:
        """What it asks beside."""
        return _TERMS.value(self.model_dump())


class StageModel(Shown):
    """A part of a start that has ended."""

    name: str = Field(examples=["claim", "spawn", "import", "load"])
    ms: int


class EngineModel(Shown):
    """An engine, and how it came to be."""

    id: str
    name: str = Field(description='what clients say as "model"')
    model: str = Field(description="that it serves")
    engine: str
    engine_args: dict[str, str]
    base_url: str | None = Field(description="for clients of the OpenAI API; null: none is known")
    state: DeploymentPhase
    message: str = Field(description="why it is not ready; empty: it is")
    start: str | None = Field(
        description="warm or cold: how its process came to be; null: it has none, or an older node"
        " agent tells nothing",
        json_schema_extra={"enum": [*(str(each) for each in StartKind if each), None]},
    )
    start_reason: str = Field(description="why it is cold where there is a warm pool")
    ready_ms: int | None = Field(description="from the request to ready; null: it never was")
    stages: list[StageModel] = Field(description="of its process's start, as they ended")
    adapters: list[str] = Field(description="that it holds, as clients name them")
    replica: str = Field(description="whose log it is; empty: none runs")
    by: str = Field(description="the token that asked for it")
    created_at: datetime
    expires_at: datetime | None = Field(description="when it ends by itself; null: never")

    @classmethod
    def of(cls, view: ClusterView, engine: Deployment, base_url: str | None) -> EngineModel:
        """An engine as the API shows it."""
        replica, status = _replica(view, engine), status_of(view, engine)
        start = replica.status.start if replica else None
        return cls.drawn(
            engine.lease,
            engine,
            engine.spec,
            engine.spec.template,
            id=id_of(engine.uid),
            engine_args=dict(engine.spec.template.engine_args),
            base_url=base_url,
            state=status.phase,
            message=status.message,
            start=(start and start.kind) or None,
            start_reason=start.reason if start else "",
            stages=[each._asdict() for each in start.stages] if start else [],
            ready_ms=engine.lease.ready_ms or None,
            adapters=[each.full_name for each in view.adapters.aliases_of(engine.spec.name)],
            replica=replica.id if replica else "",
        )


def _replica(view: ClusterView, engine: Deployment) -> Replica | None:
    """The newest of those that live: while one takes another's place there are two."""
    live = (each for each in view.replicas_for(engine) if each.state in LIVE)
    return max(live, key=lambda each: each.assigned_at, default=None)
