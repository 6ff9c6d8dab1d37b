"""What the admin API takes and gives, as pydantic models; the OpenAPI document follows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import ConfigDict, Field, StrictBool, StrictInt, model_validator

from penstock.control.admin.derived import Model, Shown, derived
from penstock.control.admin.fields import Text, one_of
from penstock.control.admin.fit_models import MemoryFitModel, unasked
from penstock.control.admin.rollout.deployment_settings import SPECS, SettingsModel
from penstock.control.admin.rollout.load_models import BurnModel, DoubtModel, LoadModel
from penstock.control.admin.rollout.program_models import ProgramStatusModel
from penstock.control.admin.tenancy.spend_models import BudgetModel
from penstock.control.state.cluster import ClusterView, Gateway, GatewayState
from penstock.control.state.fleet.liveness import ObservedNode
from penstock.control.state.fleet.memory import ReplicaMemory
from penstock.control.state.fleet.replica import Node, NodeState, Replica, ReplicaState, StartKind
from penstock.control.state.fleet.serving import is_foreign
from penstock.control.state.providers.settings import check_no_secrets
from penstock.control.state.rollout.deployment import (
    MAX_REPLICAS,
    Deployment,
    DeploymentSpec,
)
from penstock.control.state.rollout.engine_args import check_engine_args
from penstock.control.state.rollout.lease import Owner
from penstock.control.state.rollout.revision import RevisionState
from penstock.control.state.rollout.roles import role_of
from penstock.control.state.rollout.status import DeploymentPhase, status_of
from penstock.control.state.routing.degrading import said_of
from penstock.control.state.routing.doubts import Doubt
from penstock.control.state.routing.program import NO_TEXTS, Texts
from penstock.control.state.tenancy.spend import Spend
from penstock.control.state.tenancy.tokens import Role

if TYPE_CHECKING:
    # Of the head: who calls the API does not import it.
    from penstock.control.managers.routing.traffic import DeploymentTraffic

FOREIGN = "foreign"  # a replica of a deployment that the store never knew
# Of a spec: what means something to one engine alone.
ENGINES_OWN = (
    *("engine_args", "max_adapters", "max_adapter_rank", "sleep"),
    *("microserving", "microserving_rest"),
)
Setting = Text | StrictBool | StrictInt | float


@derived(
    DeploymentSpec,
    without=("name",),
    engine=(Text, {"default": "vllm"}),
    engine_args=dict[Text, Setting],
    sleep=(Text | StrictInt, {"default": "off"}),
)
class SpecModel(SettingsModel):
    """What is asked of a deployment; changes to engine, model, engine_args, max_adapters,
    max_adapter_rank, sleep, microserving and microserving_rest take new replicas."""

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
        engine_args = {key: _setting(value) for key, value in sorted(self.engine_args.items())}
        check_no_secrets(self.engine, self.model, tuple(engine_args.items()), self.labels.items())
        spec = SPECS.value(self.said() | {"name": name, "engine_args": engine_args})
        check_engine_args(spec.template)
        return spec

    @classmethod
    def of(cls, spec: DeploymentSpec, texts: Texts = NO_TEXTS) -> SpecModel:
        """A spec as the API shows it; the text of its program is one of `texts`."""
        shown = SpecModel.showing(spec, degrade=said_of(spec.degrading))
        if (program := shown.program) and program.digest:
            program.file = texts.get(program.digest, "")
        return shown


class NewDeployment(SpecModel):
    """A deployment to create."""

    name: Text = Field(description='what clients say as "model"', examples=["my-model"])


class ScaleModel(Model):
    """How many replicas there shall be."""

    model_config = ConfigDict(extra="forbid")

    replicas: Annotated[StrictInt, Field(ge=0, le=MAX_REPLICAS, examples=[2])]


class RolloutModel(Shown):
    """How far the current revision has come."""

    revision: int
    state: RevisionState
    ready: int = Field(description="replicas of it that serve")
    old: int = Field(description="replicas of others that are still there")
    undoes: int = Field(0, description="the revision whose place it took by itself; 0: none")
    paused: bool = Field(False, description="it goes no further until it is resumed")
    cause: str = Field(
        description="why it, or the one whose place it took by itself, does not get on"
    )
    failed_replica: str = Field(
        "", description="that it failed by, or the one did whose place it took: for its log"
    )


class StatusModel(Shown):
    """Actual against wanted; `message` says why they differ."""

    phase: DeploymentPhase
    wanted: int
    ready: int = Field(description="replicas that serve, of any template")
    updated: int = Field(description="of these, those of the present template")
    message: str
    rollout: RolloutModel | None = Field(None, description="null: of an older head")
    load: LoadModel = Field(default_factory=lambda: LoadModel())
    budget: BudgetModel = Field(default_factory=lambda: BudgetModel())
    slo: list[BurnModel] = Field(
        default_factory=list, description="of each objective, over each window"
    )
    program: ProgramStatusModel | None = Field(
        None, description="null: none says where its requests go"
    )


class DeploymentModel(Shown):
    """A deployment: what was asked for, and how it stands."""

    name: str
    uid: str = Field(description="tells it from deleted namesakes")
    generation: int = Field(description="for If-Match; grows with every change")
    template_digest: str = Field(description="what its replicas are made of")
    managed: bool = Field(False, description="a provider answers, or nothing but a text")
    hand_over: bool = Field(
        False, description="replicas that leave hand streams over at once, until its next change"
    )
    owner: str = one_of(*Owner, default=Owner.PEOPLE)
    spec: SpecModel
    status: StatusModel
    aliases: list[str] = Field(default_factory=list, description="of adapters that it offers")
    created_at: datetime
    updated_at: datetime
    memory: MemoryFitModel = Field(
        default_factory=unasked,
        description="of one of its replicas: told in a dry run that changes their template",
    )

    @classmethod
    def of(
        cls,
        view: ClusterView,
        deployment: Deployment,
        traffic: DeploymentTraffic,
        spent_today: Spend,
        texts: Texts = NO_TEXTS,
    ) -> DeploymentModel:
        """A deployment as the API shows it; `texts`: of programs, where they are told."""
        return cls.drawn(
            deployment,
            name=deployment.spec.name,
            managed=deployment.target.template.is_managed,
            spec=SpecModel.of(deployment.spec, texts),
            status=StatusModel.drawn(
                status_of(view, deployment),
                load=LoadModel.of(traffic),
                slo=[BurnModel.of(each) for each in traffic.burns],
                budget=BudgetModel.of(view, deployment, spent_today),
            ),
            aliases=[alias.name for alias in view.adapters.aliases_of(deployment.spec.name)],
        )


class StageModel(Shown):
    """A part of a replica's start that has ended."""

    name: str
    ms: int


class StartModel(Shown):
    """How a replica's running process came to be."""

    kind: str = one_of(*StartKind)
    reason: str = Field(description="why it is cold where there is a warm pool")
    stages: list[StageModel] = Field(description="in the order in which they ended")


class WarmPoolModel(Shown):
    """Processes of a node that have imported vLLM and wait to be a replica."""

    target: int = Field(description="that are to wait; 0: none, and `reason` says why")
    waiting: int
    reason: str = Field(description="why there are fewer than are to be")
    claims: int = Field(description="that became a replica, since the agent's start")
    cold_starts: int = Field(description="of vLLM replicas, all the same")
    filled_in_ms: int = Field(description="that the pool took, the last time; 0: never")


class ReplicaModel(Shown):
    """One replica as the head knows it."""

    id: str
    deployment: str
    node: str
    deployment_uid: str
    template_digest: str = Field(description="what it is made of")
    generation: int = Field(description="of the deployment, when it got this template")
    revision: int = Field(0, description="of the deployment, that it is made of; 0: none kept")
    devices: list[str] = Field(description="uuids of its accelerators")
    state: str = one_of(*ReplicaState, FOREIGN)
    since: datetime
    evidence: str = Field(description="what the head's own pings say")
    address: str
    microserving_rest: str = Field("", description="host:port of its MicroServing by REST")
    resumes: bool = Field(False, description="it goes on with answers that others began")
    no_resume: str = Field("", description="why not; empty: it does, or nobody knows yet")
    role: str = Field("", description="for router programs: prefill or decode; empty: none")
    pid: int
    restarts: int
    exit_code: int
    last_error: str
    leaving: str = Field("", description="why the head lets it go; empty: it does not")
    hand_over_at: datetime | None = Field(
        None, description="when its streams begin to go on at others; null: they end there"
    )
    log_path: str
    max_model_len: int
    capacity: int
    endpoints: list[str]
    adapters: list[str]
    memory_bytes: int = Field(0, description="of its processes; 0: not measured yet")
    device_memory_bytes: int = Field(0, description="of all its accelerators")
    start: StartModel | None = None
    doubts: list[DoubtModel] = Field(
        default_factory=list, description="of gateways that send it nothing by themselves"
    )

    @classmethod
    def of(
        cls,
        view: ClusterView,
        replica: Replica,
        doubts: Sequence[Doubt] = (),
        memory: ReplicaMemory | None = None,
    ) -> ReplicaModel:
        """A replica as the API shows it; "foreign" where this store never knew its deployment."""
        state = FOREIGN if is_foreign(view, replica) else replica.state
        owner = view.owner(replica)
        made_of = owner and owner.revision_of(replica.template_digest, replica.generation)
        return cls.drawn(
            replica,
            replica.status,
            memory or ReplicaMemory(replica.id),
            state=state,
            role=role_of(owner, replica),
            revision=made_of.number if made_of else 0,
            doubts=list(doubts),
        )


class DeviceModel(Shown):
    """One accelerator; memory in bytes."""

    uuid: str
    name: str
    memory_bytes: int
    memory_used_bytes: int = Field(description="by whichever process")
    lost: bool = Field(description="its driver reaches it no more")


class NodeModel(Shown):
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
    devices: list[DeviceModel] = Field(default_factory=list, description="its accelerators")

    draining: bool = Field(False, description="an operator wants it empty")
    hand_over: bool = Field(False, description="and that streams leave it at once")
    intent: str = Field("serving", description="what its agent is about to do")
    warm_pool: WarmPoolModel | None = Field(None, description="null: its agent tells of none")

    @classmethod
    def of(cls, node: Node, observed: ObservedNode | None) -> NodeModel:
        """A node as the API shows it, with what it said when it was last heard."""
        facts, resources = node.facts, observed.resources if observed else node.facts.resources
        heard_at = observed.at if observed else None
        pool = observed.warm_pool if observed else None
        own = {"heard_at": heard_at, "address": facts.agent_address, "warm_pool": pool}
        return cls.drawn(node, facts, resources, **own)


class GatewayModel(Shown):
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
        return cls.drawn(
            gateway,
            snapshot_version=report.snapshot_version if report else 0,
            reported_at=report.at if report else None,
            queued=sum(c.queued for c in counts),
            in_flight=sum(c.in_flight for c in counts),
            requests=sum(c.requests for c in counts),
            failed=sum(c.failed for c in counts),
        )


class NewToken(Model):
    """A token to create."""

    model_config = ConfigDict(extra="forbid")

    name: Text = Field(description="who the audit trail says it was", examples=["alice"])
    role: Role = Field(
        Role.VIEWER,
        description="viewer reads; operator also changes; admin also makes tokens; router calls"
        " the MicroServing of replicas, and nothing here",
    )


class TokenModel(Shown):
    """A token as it is known: its SHA-256 alone is stored."""

    id: str
    name: str
    role: Role
    created_at: datetime
    last_used_at: datetime | None = Field(description="to the hour, about")
    revoked_at: datetime | None


class CreatedTokenModel(TokenModel):
    """A token that was made just now."""

    token: str = Field(description="the token itself: shown once, keep it")


def _setting(value: str | bool | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
