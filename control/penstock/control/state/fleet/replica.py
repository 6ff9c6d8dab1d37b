"""What runs: replicas and nodes as the head knows them, and the tables of their lives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, NewType, TypeVar

from penstock.control.errors import Code, PenstockError
from penstock.control.state.fleet.memory import ReplicaMemory
from penstock.control.state.rollout.deployment import DeploymentName

ReplicaId = NewType("ReplicaId", str)
NodeId = NewType("NodeId", str)


WOKE_WRONG = 75
"""The exit code of one that did not wake as it had gone to sleep."""


class ReplicaState(StrEnum):
    """Where a replica is in its life, as far as the head knows."""

    PENDING = "pending"  # given to a node; its agent has not confirmed
    STARTING = "starting"  # runs and takes no requests: it loads, warms up, or drains unasked
    READY = "ready"  # may be sent requests
    BACKOFF = "backoff"  # ended by itself; its agent starts it again
    FAILED = "failed"  # its agent gave up: last_error says why
    DRAINING = "draining"  # this head decided so: no new requests, stops when the old are done
    ASLEEP = "asleep"  # drained; its accelerators are free for others, until it is woken
    LOST = "lost"  # gone with its node, or unknown to its agent
    STOPPED = "stopped"  # ended as asked; about to leave the view


LIVE = frozenset(
    {
        ReplicaState.PENDING,
        ReplicaState.STARTING,
        ReplicaState.READY,
        ReplicaState.BACKOFF,
        ReplicaState.FAILED,
    }
)


class NodeState(StrEnum):
    """Where a node agent is in its life."""

    EXPECTED = "expected"  # known from before the head's restart, not heard yet
    READY = "ready"  # heard lately
    SILENT = "silent"  # heartbeats missed; what runs there is left alone
    LOST = "lost"  # silent for so long that its unreachable replicas are replaced


class NodeIntent(StrEnum):
    """What an agent is about to do with its replicas; nodes.proto, `NodeIntent`."""

    SERVING = "serving"
    HANDING_OVER = "handing over"  # it stops, its replicas run on for its successor
    LEAVING = "leaving"  # the machine goes


_R = ReplicaState
_SEEN = frozenset({_R.STARTING, _R.READY, _R.BACKOFF, _R.FAILED, _R.ASLEEP})
# An agent reports about once a second, so steps in between may go unseen.
REPLICA_TRANSITIONS: Mapping[ReplicaState, frozenset[ReplicaState]] = {
    _R.PENDING: frozenset({_R.STARTING, _R.READY, _R.BACKOFF, _R.FAILED, _R.DRAINING, _R.LOST}),
    _R.STARTING: _SEEN | {_R.DRAINING, _R.LOST, _R.STOPPED},
    _R.READY: _SEEN | {_R.DRAINING, _R.LOST, _R.STOPPED},
    _R.BACKOFF: _SEEN | {_R.DRAINING, _R.LOST, _R.STOPPED},
    _R.FAILED: _SEEN | {_R.DRAINING, _R.LOST, _R.STOPPED},
    _R.DRAINING: frozenset({_R.ASLEEP, _R.LOST, _R.STOPPED}),
    _R.ASLEEP: _SEEN | {_R.PENDING, _R.DRAINING, _R.LOST, _R.STOPPED},
    _R.LOST: _SEEN | {_R.DRAINING, _R.STOPPED},
    _R.STOPPED: frozenset(),
}

_N = NodeState
NODE_TRANSITIONS: Mapping[NodeState, frozenset[NodeState]] = {
    _N.EXPECTED: frozenset({_N.READY, _N.SILENT}),
    _N.READY: frozenset({_N.SILENT, _N.EXPECTED}),
    _N.SILENT: frozenset({_N.READY, _N.LOST, _N.EXPECTED}),
    _N.LOST: frozenset({_N.READY, _N.EXPECTED}),
}

_State = TypeVar("_State", ReplicaState, NodeState)


def advance(table: Mapping[_State, frozenset[_State]], current: _State, to: _State) -> _State:
    """The next state; staying is always allowed, a step that the table lacks never is."""
    if to != current and to not in table[current]:
        raise PenstockError(f"{current} cannot become {to}", Code.IMPOSSIBLE_TRANSITION)
    return to


class Evidence(StrEnum):
    """What the head's own pings to a replica say."""

    NONE = "none"  # not pinged yet, or nothing to ping
    ANSWERS = "answers"
    DOUBTED = "doubted"  # several pings in a row got no answer
    GONE = "gone"  # nothing listens at its address, and its agent does not say otherwise
    WEDGED = "wedged"  # answers, but nothing comes out of its engine


class ReplicaAddress(NamedTuple):
    """Where a replica is called, and what it lets its callers in by."""

    id: str
    address: str  # host:port of its Inference service
    own_token: bool = True  # it asks for a token of its own; an older agent's asks the cluster's


@dataclass(frozen=True, slots=True)
class KeptAdapter:
    """An adapter that a replica is to hold, as the head orders it."""

    name: str  # "name@version"
    digest: str = ""  # of its content; empty: not known
    pinned: bool = False  # makes room for nobody
    source: str = ""  # a directory, or a name that the replica ships; empty: the digest's content


@dataclass(frozen=True, slots=True)
class FailedAdapter:
    """An adapter that a replica could not load the last time that it tried."""

    name: str  # "name@version"
    digest: str
    reason: str  # one line for a person


class StartKind(StrEnum):
    """Where a replica's process came from; nodes.proto, `StartKind`."""

    UNTOLD = ""  # an older agent, or no process
    COLD = "cold"  # a program that was started
    WARM = "warm"  # a member of the node's warm pool that was claimed


class StartStage(NamedTuple):
    """A part of a replica's start that has ended."""

    name: str  # "claim", "import", "load", "adapters", "warm_up", ...
    ms: int  # milliseconds that it took


@dataclass(frozen=True, slots=True)
class ReplicaStart:
    """How a replica's running process came to be."""

    kind: StartKind = StartKind.UNTOLD
    reason: str = ""  # why it is cold where there is a warm pool, for a person
    stages: tuple[StartStage, ...] = ()  # in the order in which they ended


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """A replica as its agent reports it; fields as in nodes.proto, `ReplicaStatus`."""

    replica_id: ReplicaId
    deployment: DeploymentName
    deployment_uid: str
    template_digest: str
    generation: int  # of the deployment, when it got this template
    state: ReplicaState
    address: str = ""  # host:port of its Inference service; empty: not serving
    pid: int = 0
    restarts: int = 0
    exit_code: int = 0
    last_error: str = ""
    started_at_ms: int = 0
    next_start_ms: int = 0
    log_path: str = ""
    max_model_len: int = 0
    capacity: int = 0
    endpoints: tuple[str, ...] = ()  # paths that its model serves; empty: not known
    adapters: tuple[str, ...] = ()  # that it told it holds, "name@version"
    adapter_digests: tuple[str, ...] = ()  # of these, in the same order; empty: not told
    failed_adapters: tuple[FailedAdapter, ...] = ()
    adapter_slots: int = 0  # adapters that it can hold at once; 0: none, or not known
    max_adapter_rank: int = 0  # 0: not known
    devices: tuple[str, ...] = ()  # uuids of its accelerators
    ready_at_ms: int = 0
    own_token: bool = False  # it lets callers in by a token of its own; see `ReplicaAddress`
    start: ReplicaStart = ReplicaStart()
    wakes: int = 0  # times that the running process was woken
    wake_ms: int = 0  # milliseconds that the last of these took
    microserving_rest: str = ""  # host:port of its REST; empty: none
    resumes: bool = False  # it goes on with answers that others began
    no_resume: str = ""  # why not, for a person; empty: it does, or nobody knows yet
    resume_test_failed: bool = False  # and that is a fault: its self-test failed

    @property
    def where(self) -> ReplicaAddress:
        """How it is called."""
        return ReplicaAddress(self.replica_id, self.address, self.own_token)

    @property
    def state_if_unasked(self) -> ReplicaState:
        """What this makes of a replica that the head has not decided to drain.

        Somebody else may have told it to drain, or its engine is dying: either way it takes no
        requests, and may yet come back.
        """
        draining = self.state is ReplicaState.DRAINING
        return ReplicaState.STARTING if draining else self.state


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica as the head knows it: where it was put, what its agent and the pings say."""

    id: ReplicaId
    deployment: DeploymentName
    deployment_uid: str  # of the deployment that it was made for
    template_digest: str  # of the template that it was made from
    generation: int  # of the deployment, when it got this template
    node: NodeId
    state: ReplicaState
    since: datetime  # of the state
    assigned_at: datetime
    status: ReplicaStatus  # as last reported; its own `state` may lag behind `state`
    evidence: Evidence = Evidence.NONE
    evidence_since: datetime | None = None
    unreported: int = 0  # heartbeats of its node in a row that did not name it
    devices: tuple[str, ...] = ()  # uuids of the accelerators that it was given
    crashes: int = 0  # processes that ended by themselves, since one stayed ready for a while
    tries: int = 0  # attempts of its deployment that came to nothing before it, in a row
    stop_accepted: bool = False  # its agent has taken the order to stop it
    instance: str = ""  # of the agent that reported it last
    leaving: str = ""  # why this head lets it go; empty: it does not
    to_sleep: bool = False  # it drains towards its sleep, not towards its end
    role: str = ""  # for router programs, where its deployment has roles; empty: none yet
    hand_over_at: datetime | None = None  # while it drains: its streams move from then on

    @property
    def is_as_ordered(self) -> bool:
        """Whether its agent reports what it was placed for: nothing else is ever routed to.

        An agent from before deployments had uids reports neither; it knows the generation.
        """
        said, status = (self.status.deployment_uid, self.status.template_digest), self.status
        if said == ("", ""):
            return status.generation == self.generation
        return said == (self.deployment_uid, self.template_digest)

    def judged(self, evidence: Evidence, now: datetime) -> Replica:
        """This replica with another evidence; itself where that is what it has."""
        if evidence is self.evidence:
            return self
        return replace(self, evidence=evidence, evidence_since=now)

    def moved(self, to: ReplicaState, now: datetime) -> Replica:
        """This replica in another state; itself where that is the state it is in."""
        if to == self.state:
            return self
        state = advance(REPLICA_TRANSITIONS, self.state, to)
        return replace(self, state=state, since=now)


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator; memory in bytes."""

    uuid: str
    name: str = ""
    memory_bytes: int = 0
    memory_used_bytes: int = 0  # by whichever process
    lost: bool = False  # its driver reaches it no more


@dataclass(frozen=True, slots=True)
class Resources:
    """What a machine has; memory in bytes."""

    cpus: int = 0
    memory_bytes: int = 0
    memory_available_bytes: int = 0
    gpus: int = 0
    devices: tuple[Device, ...] = ()
    replicas: tuple[ReplicaMemory, ...] = ()  # of those that were measured

    @property
    def usable(self) -> tuple[Device, ...]:
        """The accelerators that are not lost."""
        return tuple(device for device in self.devices if not device.lost)

    @property
    def lost(self) -> str:
        """Those that are, for a person; empty: none."""
        return ", ".join(f"{device.name} {device.uuid}" for device in self.devices if device.lost)


@dataclass(frozen=True, slots=True)
class WarmPool:
    """Processes of a node that have imported vLLM and wait; fields as in nodes.proto."""

    target: int = 0  # members that are to wait; 0: none, and `reason` says why
    waiting: int = 0
    reason: str = ""  # why there are fewer, for a person
    claims: int = 0  # that became a replica, since the agent's start
    cold_starts: int = 0  # of the pool's engine, all the same
    filled_in_ms: int = 0  # of the last zygote, to its first member


@dataclass(frozen=True, slots=True)
class ProgramStatus:
    """How a router program fares on a node; fields as in nodes.proto."""

    deployment_uid: str
    digest: str
    running: bool = False
    restarts: int = 0
    last_error: str = ""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What an agent says of itself when it registers."""

    id: NodeId
    agent_address: str  # host:port of its NodeAgent service
    host: str = ""  # where the node's replicas are reached
    zone: str = ""
    pid: int = 0
    resources: Resources = Resources()
    allows_model_code: bool = False  # takes engine arguments that run code of a model
    instance: str = ""  # of the agent, as in nodes.proto; empty: an agent that tells none
    metrics_address: str = ""  # host:port as it was told; empty: none


@dataclass(frozen=True, slots=True)
class Node:
    """One node agent as the head knows it."""

    facts: NodeFacts
    state: NodeState
    since: datetime  # of the state
    draining: bool = False  # an operator wants it empty
    hand_over: bool = False  # at once: streams there move as soon as their replica drains
    intent: NodeIntent = NodeIntent.SERVING

    @property
    def id(self) -> NodeId:
        """The node's id."""
        return self.facts.id

    def moved(self, to: NodeState, now: datetime) -> Node:
        """This node in another state; itself where that is the state it is in."""
        if to == self.state:
            return self
        return replace(self, state=advance(NODE_TRANSITIONS, self.state, to), since=now)
