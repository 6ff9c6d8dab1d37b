"""The cluster view as gateways need it: which deployments there are, and where to send requests.

Values with the fields of routes.proto, `RouteSnapshot`. A snapshot is whole: it replaces what a
gateway had.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from penstock.adapters.adapter import BaseModelFamily
from penstock.adapters.alias import Target
from penstock.control.declared.fields import drawn
from penstock.control.state.adapters.registry import AdapterRoute
from penstock.control.state.canary.routes import (
    CanaryRoute,
    CanaryShare,
    canary_routes,
    target_of,
    weights_of,
)
from penstock.control.state.cluster import ClusterView, Published
from penstock.control.state.fleet.replica import Replica, ReplicaId, ReplicaState
from penstock.control.state.fleet.serving import is_judged, serving
from penstock.control.state.recording.orders import RecordingRoute, recording_routes
from penstock.control.state.rollout.availability import Prospect, prospect_of
from penstock.control.state.rollout.deployment import Deployment, DeploymentName
from penstock.control.state.rollout.roles import role_of
from penstock.control.state.routing.degrading import Context, Degrading
from penstock.control.state.routing.limits import Limits, Sharing
from penstock.control.state.routing.program import NO_TEXTS, Texts
from penstock.control.state.routing.program_routes import ProgramRoute, program_route
from penstock.control.state.routing.slo import Slo
from penstock.control.state.routing.suspects import Suspect
from penstock.control.state.shadow.routes import ShadowRoute, shadow_routes
from penstock.control.state.stamp import Stamp
from penstock.control.state.tenancy.prices import Prices
from penstock.control.state.tenancy.shares import Shares
from penstock.control.state.tenancy.spend import Budgets
from penstock.control.state.tenancy.tenancy import TenantRoute, tenant_routes


@dataclass(frozen=True, slots=True)
class DeploymentRoute:
    """One deployment as clients may name it."""

    name: DeploymentName
    model: str
    base_family: str  # empty: it takes no adapters, or a replica of another model still serves
    created: int  # seconds since 1970
    max_model_len: int  # tokens; 0: not known
    endpoints: tuple[str, ...]  # paths that a replica of it serves, sorted; empty: not known
    aliases: tuple[tuple[str, Target], ...]  # and the versions that they name, or share out
    limits: Limits
    sharing: Sharing  # its canaries are deployments that there are
    shares: tuple[CanaryShare, ...]  # of canaries that judge themselves
    generation: int
    uid: str
    template_digest: str
    prospect: Prospect
    degrading: Degrading
    managed: bool  # no engine that a request could take along
    without_tools: bool
    budget_used_up: bool
    budget_resets_at_ms: int  # milliseconds since 1970; 0: it has no budget
    budgets: Budgets
    prices: Prices
    program: ProgramRoute | None = None  # that is asked where requests go
    slo: Slo = field(default_factory=Slo)

    @property
    def trims(self) -> bool:
        """Whether a prompt beyond the model's context is shortened at once."""
        return self.degrading.context is Context.TRIM

    def shared_as(self, other: DeploymentRoute) -> DeploymentRoute:
        """This, with its requests shared out as the other's are."""
        return replace(self, sharing=other.sharing, shares=other.shares, aliases=other.aliases)


@dataclass(frozen=True, slots=True)
class ReplicaRoute:
    """One replica that a gateway may hold sessions with; only ready ones get new requests."""

    id: str
    deployment: DeploymentName
    address: str
    node: str
    zone: str
    state: ReplicaState  # starting, ready or draining
    capacity: int
    adapters: tuple[str, ...]
    revision: int  # of the deployment, that it was made of; 0: none that is kept
    deployment_uid: str
    template_digest: str
    own_token: bool  # that it lets callers in by
    wakes: int = 0  # of its process: after each its prefix cache is empty
    role: str = ""  # for router programs; empty: none
    microserving: bool = False
    hand_over_at: datetime | None = None  # its streams go on at others; None: they end there


@dataclass(frozen=True, slots=True)
class LostAccelerators:
    """A machine whose agent reports some: its gateway is not alive."""

    node: str
    detail: str  # which


@dataclass(frozen=True, slots=True)
class Routes:
    """What a snapshot says, without its version: equal routes need no new snapshot."""

    deployments: tuple[DeploymentRoute, ...] = ()
    replicas: tuple[ReplicaRoute, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    adapters: tuple[AdapterRoute, ...] = ()  # all that may be asked for
    tenants: tuple[TenantRoute, ...] = ()
    keys_required: bool = False
    ended_keys: tuple[str, ...] = ()
    shares: Shares = field(default_factory=Shares)
    shadows: tuple[ShadowRoute, ...] = ()
    recordings: tuple[RecordingRoute, ...] = ()
    canaries: tuple[CanaryRoute, ...] = ()
    comparer_address: str = ""
    lost_accelerators: tuple[LostAccelerators, ...] = ()

    def with_rules_of(self, other: Routes) -> Routes:
        """These, with the tenants and keys of others, their shadows and canaries: a shadow that was
        paused is to repeat nothing more, a candidate that was rolled back gets nobody more."""
        now = {each.uid: each for each in other.deployments}
        return replace(
            self,
            deployments=tuple(each.shared_as(now.get(each.uid, each)) for each in self.deployments),
            canaries=other.canaries,
            tenants=other.tenants,
            keys_required=other.keys_required,
            ended_keys=other.ended_keys,
            shares=other.shares,
            shadows=other.shadows,
            recordings=other.recordings,
            comparer_address=other.comparer_address,
        )


@dataclass(frozen=True, slots=True)
class RouteSnapshot:
    """Routes with a version that grows with every change, across restarts of the head."""

    version: int
    made_at: datetime
    routes: Routes
    stamp: Stamp = field(default_factory=Stamp)
    # What others' clocks show beyond the steady time, in which the moments of its routes are.
    wall_ahead: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class _Made:
    """A deployment's route, all that it was made of, and the replicas that serve it."""

    of: tuple[object, ...]
    route: DeploymentRoute
    served: tuple[ReplicaId, ...]


class MadeRoutes:
    """The routes of one view after the other: made anew only of what has changed since the last."""

    def __init__(self, shipped: Texts = NO_TEXTS) -> None:
        """`shipped`: the router programs that are known by name."""
        self._shipped = shipped
        self._of: tuple[object, ...] = ()
        self._routes = Routes()
        self._deployments: dict[DeploymentName, _Made] = {}
        self._replicas: dict[ReplicaId, tuple[tuple[object, ...], ReplicaRoute]] = {}

    def of(self, view: ClusterView) -> Routes:
        """The routes that follow from the view."""
        of = what_routes_follow_from(view)
        if not _same(of, self._of):
            self._routes, self._of = self._new(view), of
        return self._routes

    def _new(self, view: ClusterView) -> Routes:
        self._deployments = {n: self._deployment(view, d) for n, d in view.deployments.items()}
        served = {name for made in self._deployments.values() for name in made.served}
        self._replicas = {
            r.id: self._replica(view, r)
            for r in view.replicas.values()
            if r.id in served or _is_known_of(view, r)
        }
        return Routes(
            deployments=tuple(made.route for _, made in sorted(self._deployments.items())),
            replicas=tuple(route for _, (_, route) in sorted(self._replicas.items())),
            suspects=tuple(s for _, s in sorted(view.suspects.items())),
            adapters=view.adapters.routes(),
            tenants=tenant_routes(view.tenancy),
            keys_required=view.tenancy.access.keys_required,
            ended_keys=view.tenancy.access.ended_keys,
            shares=view.tenancy.shares,
            shadows=shadow_routes(view),
            recordings=recording_routes(view),
            canaries=canary_routes(view),
            comparer_address=view.shadows.compared.address,
            lost_accelerators=_lost_accelerators(view),
        )

    def _deployment(self, view: ClusterView, deployment: Deployment) -> _Made:
        of = _what_a_deployment_follows_from(view, deployment)
        made = self._deployments.get(deployment.spec.name)
        if made and _same(of, made.of):
            return made
        served = tuple(r.id for r in serving(view, deployment))
        route = replace(
            _deployment_route(view, deployment),
            program=program_route(deployment, view.programs, self._shipped),
        )
        return _Made(of, route, served)

    def _replica(
        self, view: ClusterView, replica: Replica
    ) -> tuple[tuple[object, ...], ReplicaRoute]:
        of = (replica, view.nodes.get(replica.node), view.owner(replica))
        made = self._replicas.get(replica.id)
        return made if made and _same(of, made[0]) else (of, _replica_route(view, replica))


def routes_of(view: ClusterView) -> Routes:
    """The routes that follow from the view."""
    return MadeRoutes().of(view)


def what_routes_follow_from(view: ClusterView) -> tuple[object, ...]:
    """All that routes are made of, and whether they may be told."""
    return (
        view.deployments,
        view.nodes,
        view.replicas,
        view.departed,
        view.suspects,
        view.tenancy,
        view.adapters,
        view.spending,
        view.shadows,
        view.recordings,
        view.canaries.shared,
        view.held,
    )


def _what_a_deployment_follows_from(
    view: ClusterView, deployment: Deployment
) -> tuple[object, ...]:
    there = (c.deployment in view.deployments for c in deployment.spec.sharing.canary)
    return (
        deployment,
        view.adapters,
        view.spending,
        view.canaries.shared.get(deployment.spec.name),
        bool(view.nodes),
        *there,
        *view.replicas_for(deployment),
    )


def _same(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    """Values are never changed: the same object says the same."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def with_published(
    view: ClusterView, snapshot: RouteSnapshot, succeeded_at: datetime | None = None
) -> ClusterView:
    """The view knowing what gateways are told, and since which version without whom."""
    ready = frozenset(r.id for r in snapshot.routes.replicas if r.state is ReplicaState.READY)
    left = {
        str(r.id): view.published.left.get(r.id, snapshot.version)
        for r in view.replicas.values()
        if r.state is ReplicaState.DRAINING and r.id not in ready
    }
    published = Published(snapshot.version, ready, left, succeeded_at)
    return view if published == view.published else replace(view, published=published)


def _lost_accelerators(view: ClusterView) -> tuple[LostAccelerators, ...]:
    return tuple(
        LostAccelerators(str(node.id), node.facts.resources.lost)
        for _, node in sorted(view.nodes.items())
        if node.facts.resources.lost
    )


def _is_known_of(view: ClusterView, replica: Replica) -> bool:
    """Gateways connect to starting ones, and a draining one may still stream to old calls."""
    return (
        replica.state in (ReplicaState.STARTING, ReplicaState.DRAINING)
        and bool(replica.status.address)
        and replica.is_as_ordered
        and view.owner(replica) is not None
    )


def _deployment_route(view: ClusterView, deployment: Deployment) -> DeploymentRoute:
    spec, target = deployment.running, deployment.target
    replicas = list(view.replicas_for(deployment))
    stable = [r for r in replicas if not is_judged(deployment, r)]
    lengths = [r.status.max_model_len for r in stable]
    managed = _is_managed(deployment, replicas)
    return drawn(
        DeploymentRoute,
        deployment,
        spec,
        target.template,
        template_digest=target.template_digest,
        base_family=_family(deployment, replicas),
        created=int(deployment.created_at.timestamp()),
        max_model_len=min((length for length in lengths if length), default=0),
        endpoints=tuple(sorted({path for r in stable for path in r.status.endpoints})),
        aliases=tuple((a.name, target_of(view, a)) for a in view.adapters.aliases_of(spec.name)),
        sharing=replace(
            spec.sharing,
            canary=tuple(c for c in spec.sharing.canary if c.deployment in view.deployments),
        ),
        shares=weights_of(view, spec.name),
        prospect=prospect_of(view, deployment),
        managed=managed,
        without_tools=not target.template.calls_tools,
        slo=spec.objectives.slo,
        budget_used_up=bool(spec.budgets) and spec.name in view.spending.used_up,
        budget_resets_at_ms=view.spending.resets_at_ms if spec.budgets else 0,
        prices=spec.all_prices if managed == target.template.is_managed else Prices(),
    )


def _family(deployment: Deployment, replicas: Iterable[Replica]) -> str:
    """Which adapters may be asked for. None while replicas of an earlier model serve, on which
    those of this one would be the wrong weights; none of a deployment without room for any."""
    template = deployment.target.template
    other = any(
        r.state is not ReplicaState.PENDING and not _has_model(deployment, r, template.family)
        for r in replicas
    )
    return "" if other or not template.adapter_slots else template.family


def _has_model(deployment: Deployment, replica: Replica, family: BaseModelFamily) -> bool:
    made_of = deployment.revision_of(replica.template_digest, replica.generation)
    if made_of is None:
        return replica.generation >= deployment.model_generation
    return made_of.template.family == family


def _is_managed(deployment: Deployment, replicas: Iterable[Replica]) -> bool:
    """Not while replicas of another template serve: they may have engines. What is judged beside
    it is known."""
    judged = deployment.judged
    known = {judged.template_digest} if judged and judged.template.is_managed else set()
    known.add(deployment.target.template_digest)
    others = any(r.state is ReplicaState.READY and r.template_digest not in known for r in replicas)
    return deployment.target.template.is_managed and not others


def _replica_route(view: ClusterView, replica: Replica) -> ReplicaRoute:
    node, owner = view.nodes.get(replica.node), view.owner(replica)
    made_of = owner and owner.revision_of(replica.template_digest, replica.generation)
    return drawn(
        ReplicaRoute,
        replica,
        replica.status,
        zone=node.facts.zone if node else "",
        revision=made_of.number if made_of else 0,
        role=role_of(owner, replica),
        hand_over_at=replica.hand_over_at if replica.state is ReplicaState.DRAINING else None,
        microserving=bool(made_of and made_of.template.microserving),
    )
