"""The one in-memory picture of the cluster: an immutable view."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, TypeVar

from penstock.control.errors import Code, NotFound
from penstock.control.state.adapters.registry import AdapterRegistry
from penstock.control.state.applied import Applied
from penstock.control.state.canary.canary import Canaries
from penstock.control.state.canary.counts import StepCounts
from penstock.control.state.fleet.replica import Node, NodeId, Replica, ReplicaId
from penstock.control.state.recording.recordings import Recordings
from penstock.control.state.rollout.deployment import Departed, Deployment, DeploymentName
from penstock.control.state.rollout.kept_evidence import KeptEvidence
from penstock.control.state.routing.program_counts import ProgramCounts
from penstock.control.state.routing.slo import SloCount
from penstock.control.state.routing.suspects import Suspects
from penstock.control.state.shadow.shadows import Shadows
from penstock.control.state.tenancy.spend import Spending
from penstock.control.state.tenancy.tenancy import Tenancy

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

# Deleted deployments that are remembered: replicas of older ones are shown as foreign.
MAX_DEPARTED = 10_000
# Names that an error tells of all that there are.
NAMED = 5


class GatewayState(StrEnum):
    """Where a gateway process is in its life."""

    STARTING = "starting"
    READY = "ready"  # gives signs of life
    UNRESPONSIVE = "unresponsive"  # runs, but gives no sign of life
    DRAINING = "draining"  # takes no new connections; ends when its last client has left
    BACKOFF = "backoff"  # ended by itself; started again soon
    STOPPED = "stopped"
    REMOTE = "remote"  # not ours to start: it reports, nothing more is known
    SILENT = "silent"  # a remote one that no longer reports; forgotten after a while


@dataclass(frozen=True, slots=True)
class DeploymentCounts:
    """One deployment as one gateway counts it since its start, as far as the head looks
    at it; units as in routes.proto."""

    deployment: str
    queued: int = 0
    in_flight: int = 0
    requests: int = 0
    failed: int = 0
    rejected: int = 0
    queue_wait_us_sum: int = 0
    sent: int = 0
    estimated_wait_ms: int = 0
    resumed: int = 0
    not_resumed: int = 0
    slo: tuple[SloCount, ...] = ()


@dataclass(frozen=True, slots=True)
class GatewayReport:
    """The latest that a gateway said of itself."""

    at: datetime
    snapshot_version: int
    deployments: tuple[DeploymentCounts, ...] = ()
    draining: bool = False  # it takes no new connections
    bytes_sent: int = 0  # to clients, since it started
    instance: str = ""  # of the gateway's process: counts of another begin at 0 again
    # Replicas that it sends nothing to by itself: id, reason, milliseconds that this will last.
    doubts: tuple[tuple[str, str, int], ...] = ()
    # Requests under way of tenants that have a limit of them.
    streams: Mapping[str, int] = field(default_factory=dict)
    programs: Mapping[str, ProgramCounts] = field(default_factory=dict)  # by deployment
    canaries: tuple[StepCounts, ...] = ()  # of the rules that it has
    metrics_address: str = ""  # host:port as it was told; empty: none
    machine: str = ""  # the host that its reports come from


@dataclass(frozen=True, slots=True)
class Gateway:
    """One gateway as the head knows it; pid 0 and an empty address for remote ones."""

    id: str
    state: GatewayState
    address: str = ""  # host:port of its OpenAI API
    pid: int = 0
    restarts: int = 0
    started_at: datetime | None = None
    last_error: str = ""
    report: GatewayReport | None = None
    reporting: bool = False  # whether the report is of these seconds


@dataclass(frozen=True, slots=True)
class Published:
    """What the latest snapshot says, as far as stopping replicas has to know."""

    version: int = 0
    ready: frozenset[str] = frozenset()  # replicas that it sends new requests to
    left: Mapping[str, int] = field(default_factory=dict)  # draining ones: first version without
    succeeded_at: datetime | None = None  # when this head began to tell; None: no other did before


@dataclass(frozen=True, slots=True)
class UnknownPolicy:
    """Of a deployment's document of a newer head, as of that generation: read as power_of_two."""

    deployment: DeploymentName
    generation: int
    policy: str


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Everything the head knows at one moment. Mappings are read-only."""

    deployments: Mapping[DeploymentName, Deployment] = field(default_factory=dict)
    nodes: Mapping[NodeId, Node] = field(default_factory=dict)
    replicas: Mapping[ReplicaId, Replica] = field(default_factory=dict)
    gateways: Mapping[str, Gateway] = field(default_factory=dict)
    departed: Mapping[str, Departed] = field(default_factory=dict)  # by uid
    suspects: Suspects = field(default_factory=dict)
    tenancy: Tenancy = field(default_factory=Tenancy)
    adapters: AdapterRegistry = field(default_factory=AdapterRegistry)
    spending: Spending = field(default_factory=Spending)
    shadows: Shadows = field(default_factory=Shadows)
    canaries: Canaries = field(default_factory=Canaries)
    evidence: KeptEvidence = field(default_factory=KeptEvidence)  # of templates
    recordings: Recordings = field(default_factory=Recordings)
    applied: Mapping[str, Applied] = field(default_factory=dict)  # by their keys
    published: Published = field(default_factory=Published)
    held: str = ""  # why this head holds still; empty: it is in command
    unreadable: tuple[str, ...] = ()  # documents of the store that this version cannot read
    programs: Mapping[str, str] = field(default_factory=dict)  # texts of router programs, by digest
    unknown_policies: tuple[UnknownPolicy, ...] = ()
    _by_name: dict[DeploymentName, list[Replica]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def apart(self) -> ClusterView:
        """The same view for another thread: what is looked up once and kept with a view is not
        shared."""
        return replace(self, adapters=replace(self.adapters))

    def deployment(self, name: str) -> Deployment:
        """The deployment of this name; raises `unknown-deployment`."""
        try:
            return self.deployments[DeploymentName(name)]
        except KeyError:
            known = some_of(self.deployments)
            raise NotFound(
                f"no deployment {name!r}: there are {known}", Code.UNKNOWN_DEPLOYMENT
            ) from None

    def replicas_of(self, name: DeploymentName) -> Iterator[Replica]:
        """The replicas of this name, in order of their ids: of deleted namesakes too."""
        if not self._by_name and self.replicas:
            for _, replica in sorted(self.replicas.items()):
                self._by_name.setdefault(replica.deployment, []).append(replica)
        return iter(self._by_name.get(name, ()))

    def owner(self, replica: Replica) -> Deployment | None:
        """The deployment that the replica was made for; None where it is deleted or not ours."""
        deployment = self.deployments.get(replica.deployment)
        return deployment if deployment and deployment.uid == replica.deployment_uid else None

    def replicas_for(self, deployment: Deployment) -> Iterator[Replica]:
        """The replicas that were made for this deployment, in order of their ids."""
        name, uid = deployment.spec.name, deployment.uid
        return (r for r in self.replicas_of(name) if r.deployment_uid == uid)

    def with_deployment(self, deployment: Deployment) -> ClusterView:
        """This view with one deployment added or replaced, and the text of its program."""
        name, program = deployment.spec.name, deployment.spec.sharing.program
        deployments, programs = _put(self.deployments, name, deployment), self.programs
        if program and program.text:
            programs = _put(programs, program.digest, program.text)
        return replace(self, deployments=deployments, programs=programs)

    def without_deployment(self, name: DeploymentName) -> ClusterView:
        """This view with one deployment less, and its aliases: whatever was made for the name is
        drained."""
        uids = {r.deployment_uid for r in self.replicas_of(name) if not self.owner(r)}
        if known := self.deployments.get(name):
            uids.add(known.uid)
        adapters = self.adapters.without_aliases_of(name)
        view = replace(self, deployments=_drop(self.deployments, name), adapters=adapters)
        for uid in sorted(uids):
            view = view.with_departed(Departed(uid, name, collected=True))
        return view

    def with_named_programs(self) -> ClusterView:
        """This view without the texts of programs that nothing names any more: no deployment, no
        settings that one may go back to, and no set that was applied."""
        named = {_digest_in(each.fields) for each in self.applied.values() if self.programs}
        for deployment in self.deployments.values() if self.programs else ():
            program = deployment.spec.sharing.program
            named.add(program.digest if program else "")
            for change in deployment.settings_past:
                named |= {_digest_in(change.before), _digest_in(change.after)}
        if named >= self.programs.keys():
            return self
        kept = {digest: text for digest, text in self.programs.items() if digest in named}
        return replace(self, programs=MappingProxyType(kept))

    def with_departed(self, gone: Departed) -> ClusterView:
        """This view remembering that a deployment is no more."""
        known = self.departed.get(gone.uid)
        if known and known.collected >= gone.collected:
            return self
        departed = dict(self.departed)
        departed[gone.uid] = replace(gone, serial=_last_serial(departed) + 1)
        if len(departed) > MAX_DEPARTED:
            departed.pop(min(departed.values(), key=lambda d: d.serial).uid)
        return replace(self, departed=departed)

    def with_node(self, node: Node) -> ClusterView:
        """This view with one node added or replaced."""
        return replace(self, nodes=_put(self.nodes, node.id, node))

    def without_node(self, node_id: NodeId) -> ClusterView:
        """This view with one node less."""
        return replace(self, nodes=_drop(self.nodes, node_id))

    def with_replica(self, replica: Replica) -> ClusterView:
        """This view with one replica added or replaced."""
        return replace(self, replicas=_put(self.replicas, replica.id, replica))

    def without_replica(self, replica_id: ReplicaId) -> ClusterView:
        """This view with one replica less."""
        return replace(self, replicas=_drop(self.replicas, replica_id))

    def with_gateway(self, gateway: Gateway) -> ClusterView:
        """This view with one gateway added or replaced."""
        return replace(self, gateways=_put(self.gateways, gateway.id, gateway))

    def without_gateway(self, gateway_id: str) -> ClusterView:
        """This view with one gateway less."""
        return replace(self, gateways=_drop(self.gateways, gateway_id))


def _digest_in(fields: Mapping[str, Any]) -> str:
    """Of the text of a program that is among the fields of a deployment."""
    program = fields.get("program")
    return str(program.get("digest", "")) if isinstance(program, Mapping) else ""


def _last_serial(departed: Mapping[str, Departed]) -> int:
    return max((d.serial for d in departed.values()), default=0)


def _put(old: Mapping[_Key, _Value], key: _Key, value: _Value) -> Mapping[_Key, _Value]:
    return old if old.get(key) == value else MappingProxyType({**old, key: value})


def _drop(old: Mapping[_Key, _Value], key: _Key) -> Mapping[_Key, _Value]:
    return MappingProxyType({k: v for k, v in old.items() if k != key}) if key in old else old


def some_of(names: Collection[str]) -> str:
    """The first few names and how many more there are: an error is to stay one line."""
    first = sorted(names)[:NAMED]
    more = len(names) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "") or "none"
