"""What the admin API takes and gives, as pydantic models; the OpenAPI document follows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, model_validator

from penstock.adapters.lora_config import LARGEST_RANK
from penstock.control.admin.fields import Count, Text, one_of
from penstock.control.admin.rollout.deployment_settings import SettingsModel
from penstock.control.admin.rollout.load_models import DoubtModel, LoadModel
from penstock.control.admin.tenancy.spend_models import BudgetModel
from penstock.control.managers.routing.traffic import DeploymentTraffic
from penstock.control.state.cluster import ClusterView, Gateway, GatewayState
from penstock.control.state.fleet.liveness import ObservedNode
from penstock.control.state.fleet.replica import Node, NodeState, Replica, ReplicaState
from penstock.control.state.fleet.serving import is_foreign
from penstock.control.state.providers.settings import check_no_secrets
from penstock.control.state.rollout.deployment import (
    ENGINES,
    MAX_REPLICAS,
    MOST_ADAPTERS,
    Deployment,
    DeploymentName,
    DeploymentSpec,
    Template,
)
from penstock.control.state.rollout.engine_args import check_engine_args
from penstock.control.state.rollout.status import DeploymentPhase, status_of
from penstock.control.state.routing.doubts import Doubt
from penstock.control.state.tenancy.spend import Spend
from penstock.control.state.tenancy.tokens import Role, Token

FOREIGN = "foreign"  # a replica of a deployment that the store never knew
Setting = Text | StrictBool | StrictInt | float


class SpecModel(SettingsModel):
    """What is asked of a deployment; changes to engine, model, engine_args, max_adapters and
    max_adapter_rank take new replicas."""

    engine: Text = Field(
        "vllm",
        description="what answers; bedrock, openai and canned without a model on the node",
        json_schema_extra={"enum": list(ENGINES)},
    )
    model: Text = Field(
        description="path, Hugging Face id, a name that the replica ships, or the provider's id",
        examples=["penstock-mini"],
    )
    engine_args: dict[Text, Setting] = Field(
        default_factory=dict,
        description="the engine's own settings, without dashes in front; never a secret: where it"
        " is, such as api_key_env or api_key_file",
        examples=[{"max_model_len": "2048"}],
    )
    max_adapters: Annotated[StrictInt, Field(ge=0, le=MOST_ADAPTERS)] = Field(
        0, description="adapters that an engine holds at once; 0: none, or a few by their rank"
    )
    max_adapter_rank: Annotated[StrictInt, Field(ge=0, le=LARGEST_RANK)] = Field(
        0, description="0: none, or the usual one by max_adapters"
    )
    replicas: Annotated[StrictInt, Field(ge=0, le=MAX_REPLICAS)] = 1
    labels: dict[Text, Text] = Field(
        default_factory=dict,
        max_length=100,
        description="for people and programs: Penstock gives them no meaning",
        examples=[{"team": "search"}],
    )
    start_limit_ms: Count = Field(
        0,
        description="milliseconds from a replica's start to ready, after which it is started anew; "
        "0: the node agent's default, and a minute where a provider answers",
    )

    @model_validator(mode="before")
    @classmethod
    def _adapters_are_registered(cls, given: object) -> object:
        if isinstance(given, dict) and "adapters" in given:
            raise ValueError(
                "adapters are no part of a deployment: register them at /admin/v1/adapters, name "
                "them at /admin/v1/aliases, and set max_adapters here"
            )
        return given

    def to_spec(self, name: str) -> DeploymentSpec:
        """The spec that this asks for; raises InvalidSpec."""
        template = Template(
            engine=self.engine,
            model=self.model,
            engine_args=tuple(sorted((k, _setting(v)) for k, v in self.engine_args.items())),
            max_adapters=self.max_adapters,
            max_adapter_rank=self.max_adapter_rank,
        )
        check_no_secrets(self.engine, self.model, template.engine_args, self.labels.items())
        spec = DeploymentSpec(
            name=DeploymentName(name),
            template=template,
            replicas=self.replicas,
            limits=self.limits(),
            sharing=self.sharing(),
            degrading=self.degrading(),
            budgets=self.budgets(),
            prices=self.prices(),
            labels=tuple(sorted(self.labels.items())),
            start_limit_ms=self.start_limit_ms,
        )
        check_engine_args(template)
        return spec

    @classmethod
    def of(cls, spec: DeploymentSpec) -> SpecModel:
        """A spec as the API shows it."""
        template = spec.template
        return cls(
            engine=template.engine,
            model=template.model,
            engine_args=dict(template.engine_args),
            max_adapters=template.max_adapters,
            max_adapter_rank=template.max_adapter_rank,
            replicas=spec.replicas,
            **SettingsModel.of_spec(spec).model_dump(),
            labels=dict(spec.labels),
            start_limit_ms=spec.start_limit_ms,
        )


class NewDeployment(SpecModel):
    """A deployment to create."""

    name: Text = Field(description='what clients say as "model"', examples=["my-model"])


class ScaleModel(BaseModel):
    """How many replicas there shall be."""

    model_config = ConfigDict(extra="forbid")

    replicas: Annotated[StrictInt, Field(ge=0, le=MAX_REPLICAS, examples=[2])]


class StatusModel(BaseModel):
    """Actual against wanted; `message` says why they differ."""

    phase: DeploymentPhase
    wanted: int
    ready: int = Field(description="replicas that serve, of any template")
    updated: int = Field(description="of these, those of the present template")
    message: str
    load: LoadModel = Field(default_factory=lambda: LoadModel())
    budget: BudgetModel = Field(default_factory=lambda: BudgetModel())


class DeploymentModel(BaseModel):
    """A deployment: what was asked for, and how it stands."""

    name: str
    uid: str = Field(description="tells it from deleted namesakes")
    generation: int = Field(description="for If-Match; grows with every change")
    template_digest: str = Field(description="what its replicas are made of")
    managed: bool = Field(False, description="a provider answers, or nothing but a text")
    spec: SpecModel
    status: StatusModel
    aliases: list[str] = Field(default_factory=list, description="of adapters that it offers")
    unregistered: list[str] = Field(
        default_factory=list,
        description="adapters of an older version's spec whose files the head cannot read",
    )
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(
        cls,
        view: ClusterView,
        deployment: Deployment,
        traffic: DeploymentTraffic,
        spent_today: Spend,
    ) -> DeploymentModel:
        """A deployment as the API shows it."""
        status = status_of(view, deployment)
        return cls(
            name=deployment.spec.name,
            uid=deployment.uid,
            generation=deployment.generation,
            template_digest=deployment.template_digest,
            managed=deployment.spec.template.is_managed,
            spec=SpecModel.of(deployment.spec),
            status=StatusModel(
                phase=status.phase,
                wanted=status.wanted,
                ready=status.ready,
                updated=status.updated,
                message=status.message,
                load=LoadModel.of(traffic),
                budget=BudgetModel.of(view, deployment, spent_today),
            ),
            aliases=[alias.name for alias in view.adapters.aliases_of(deployment.spec.name)],
            unregistered=[f"{b.alias}={b.adapter}={b.source}" for b in deployment.bindings],
            created_at=deployment.created_at,
            updated_at=deployment.updated_at,
        )


class ReplicaModel(BaseModel):
    """One replica as the head knows it."""

    id: str
    deployment: str
    node: str
    deployment_uid: str
    template_digest: str = Field(description="what it is made of")
    generation: int = Field(description="of the deployment, when it got this template")
    devices: list[str] = Field(description="uuids of its accelerators")
    state: str = one_of(*ReplicaState, FOREIGN)
    since: datetime
    evidence: str = Field(description="what the head's own pings say")
    address: str
    pid: int
    restarts: int
    exit_code: int
    last_error: str
    log_path: str
    max_model_len: int
    capacity: int
    endpoints: list[str]
    adapters: list[str]
    doubts: list[DoubtModel] = Field(
        default_factory=list, description="of gateways that send it nothing by themselves"
    )

    @classmethod
    def of(cls, view: ClusterView, replica: Replica, doubts: Sequence[Doubt] = ()) -> ReplicaModel:
        """A replica as the API shows it; "foreign" where this store never knew its deployment."""
        status = replica.status
        return cls(
            id=replica.id,
            deployment=replica.deployment,
            node=replica.node,
            deployment_uid=replica.deployment_uid,
            template_digest=replica.template_digest,
            generation=replica.generation,
            devices=list(replica.devices),
            state=FOREIGN if is_foreign(view, replica) else replica.state,
            since=replica.since,
            evidence=replica.evidence,
            address=status.address,
            pid=status.pid,
            restarts=status.restarts,
            exit_code=status.exit_code,
            last_error=status.last_error,
            log_path=status.log_path,
            max_model_len=status.max_model_len,
            capacity=status.capacity,
            endpoints=list(status.endpoints),
            adapters=list(status.adapters),
            doubts=[DoubtModel.of(each) for each in doubts],
        )


class NodeModel(BaseModel):
    """One node agent as the head knows it; memory in bytes."""

    id: str
    state: str = one_of(*NodeState)
    since: datetime
    heard_at: datetime | None = Field(description="null: not by this head")
    address: str = Field(description="host:port of its NodeAgent service")
    host: str
    zone: str
    pid: int
    cpus: int
    gpus: int
    memory_bytes: int
    memory_available_bytes: int

    draining: bool = Field(False, description="an operator wants it empty")
    intent: str = Field("serving", description="what its agent is about to do")

    @classmethod
    def of(cls, node: Node, observed: ObservedNode | None) -> NodeModel:
        """A node as the API shows it, with what it said when it was last heard."""
        facts, resources = node.facts, observed.resources if observed else node.facts.resources
        return cls(
            id=facts.id,
            state=node.state,
            since=node.since,
            heard_at=observed.at if observed else None,
            draining=node.draining,
            intent=node.intent,
            address=facts.agent_address,
            host=facts.host,
            zone=facts.zone,
            pid=facts.pid,
            cpus=resources.cpus,
            gpus=resources.gpus,
            memory_bytes=resources.memory_bytes,
            memory_available_bytes=resources.memory_available_bytes,
        )


class GatewayModel(BaseModel):
    """One gateway as the head knows it; address and pid only of local ones."""

    id: str
    state: str = one_of(*GatewayState)
    address: str
    pid: int
    restarts: int
    started_at: datetime | None
    last_error: str
    snapshot_version: int = Field(description="what it routes by; 0: has not reported")
    reported_at: datetime | None
    queued: int
    in_flight: int
    requests: int
    failed: int

    @classmethod
    def of(cls, gateway: Gateway) -> GatewayModel:
        """A gateway as the API shows it, its counts summed over deployments."""
        report = gateway.report
        counts = report.deployments if report else ()
        return cls(
            id=gateway.id,
            state=gateway.state,
            address=gateway.address,
            pid=gateway.pid,
            restarts=gateway.restarts,
            started_at=gateway.started_at,
            last_error=gateway.last_error,
            snapshot_version=report.snapshot_version if report else 0,
            reported_at=report.at if report else None,
            queued=sum(c.queued for c in counts),
            in_flight=sum(c.in_flight for c in counts),
            requests=sum(c.requests for c in counts),
            failed=sum(c.failed for c in counts),
        )


class NewToken(BaseModel):
    """A token to create."""

    model_config = ConfigDict(extra="forbid")

    name: Text = Field(description="who the audit trail says it was", examples=["alice"])
    role: Role = Field(
        Role.VIEWER,
        description="viewer reads; operator also changes; admin also makes tokens",
    )


class TokenModel(BaseModel):
    """A token as it is known: its SHA-256 alone is stored."""

    id: str
    name: str
    role: Role
    created_at: datetime
    last_used_at: datetime | None = Field(description="to the hour, about")
    revoked_at: datetime | None

    @classmethod
    def of(cls, token: Token) -> TokenModel:
        """A token as the API shows it."""
        return cls.model_validate(token, from_attributes=True)


class CreatedTokenModel(TokenModel):
    """A token that was made just now."""

    token: str = Field(description="the token itself: shown once, keep it")


def _setting(value: str | bool | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
