"""What happened in the cluster, in sentences for its operators: values. What makes one is said in
`happened.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final

REPEATS_WITHIN: Final = timedelta(hours=1)
KEPT_FOR: Final = timedelta(days=7)
MOST_KEPT: Final = 10_000
LONGEST_TEXT: Final = 800  # characters: what an engine says of its end is some 600


class EventKind(StrEnum):
    """What an event is about."""

    DEPLOYMENT = "deployment"
    ROLLOUT = "rollout"
    REPLICA = "replica"
    NODE = "node"
    GATEWAY = "gateway"
    ADAPTER = "adapter"
    ALIAS = "alias"
    BUDGET = "budget"
    QUARANTINE = "quarantine"
    SHADOW = "shadow"
    CANARY = "canary"


class EventType(StrEnum):
    """Whether somebody should look."""

    NORMAL = "normal"
    WARNING = "warning"


class Reason(StrEnum):
    """What happened, in one word."""

    DEPLOYMENT_CREATED = "DeploymentCreated"
    DEPLOYMENT_CHANGED = "DeploymentChanged"
    DEPLOYMENT_DELETED = "DeploymentDeleted"
    REVISION_STARTED = "RevisionStarted"
    REVISION_SERVED = "RevisionServed"
    REVISION_FAILED = "RevisionFailed"
    ROLLED_BACK = "RolledBack"
    ROLLOUT_PAUSED = "RolloutPaused"
    ROLLOUT_RESUMED = "RolloutResumed"
    REPLICA_STARTED = "ReplicaStarted"
    REPLICA_READY = "ReplicaReady"
    REPLICA_ENDED = "ReplicaEnded"
    REPLICA_CRASH_LOOPING = "ReplicaCrashLooping"
    REPLICA_FAILED = "ReplicaFailed"
    REPLICA_DRAINING = "ReplicaDraining"
    REPLICA_LOST = "ReplicaLost"
    REPLICA_STOPPED = "ReplicaStopped"
    REPLICA_ASLEEP = "ReplicaAsleep"
    REPLICA_WAKING = "ReplicaWaking"
    REPLICA_WOKE_WRONG = "ReplicaWokeWrong"
    NODE_JOINED = "NodeJoined"
    NODE_SILENT = "NodeSilent"
    NODE_LOST = "NodeLost"
    NODE_BACK = "NodeBack"
    NODE_DRAINING = "NodeDraining"
    NODE_DRAINED = "NodeDrained"
    NODE_FORGOTTEN = "NodeForgotten"
    GATEWAY_CONNECTED = "GatewayConnected"
    GATEWAY_LOST = "GatewayLost"
    GATEWAY_STOPPED = "GatewayStopped"
    ADAPTER_REGISTERED = "AdapterRegistered"
    ADAPTER_CANARY = "AdapterCanary"
    ADAPTER_LIVE = "AdapterLive"
    ADAPTER_RETIRED = "AdapterRetired"
    ADAPTER_FAILED = "AdapterFailed"
    ADAPTER_DELETED = "AdapterDeleted"
    ALIAS_SET = "AliasSet"
    ALIAS_MOVED = "AliasMoved"
    ALIAS_DELETED = "AliasDeleted"
    BUDGET_USED_UP = "BudgetUsedUp"
    PROGRAM_FAILED = "ProgramFailed"
    PROGRAM_NOT_ASKED = "ProgramNotAsked"
    PROGRAM_ASKED_AGAIN = "ProgramAskedAgain"
    REQUEST_QUARANTINED = "RequestQuarantined"
    REQUEST_RELEASED = "RequestReleased"
    VERDICT_CHANGED = "VerdictChanged"
    SHADOW_ENDED = "ShadowEnded"
    CANARY_STARTED = "CanaryStarted"
    CANARY_ADVANCED = "CanaryAdvanced"
    CANARY_HELD = "CanaryHeld"
    CANARY_PAUSED = "CanaryPaused"
    CANARY_RESUMED = "CanaryResumed"
    CANARY_ROLLED_BACK = "CanaryRolledBack"
    CANARY_PROMOTED = "CanaryPromoted"
    CANARY_ABORTED = "CanaryAborted"


_R = Reason
WARNINGS: Final = frozenset(
    {
        *(_R.REVISION_FAILED, _R.ROLLED_BACK),
        *(_R.REPLICA_ENDED, _R.REPLICA_CRASH_LOOPING, _R.REPLICA_FAILED, _R.REPLICA_LOST),
        _R.REPLICA_WOKE_WRONG,
        *(_R.NODE_SILENT, _R.NODE_LOST, _R.GATEWAY_LOST, _R.ADAPTER_FAILED),
        *(_R.BUDGET_USED_UP, _R.REQUEST_QUARANTINED),
        *(_R.PROGRAM_FAILED, _R.PROGRAM_NOT_ASKED),
        _R.CANARY_ROLLED_BACK,
    }
)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened."""

    kind: str  # an EventKind, or what a later version knows
    name: str
    reason: str  # a Reason, likewise
    text: str  # one sentence; it says neither what a client sent nor a secret
    at: datetime
    deployment: str = ""  # that it concerns; empty: none, or all

    @property
    def type(self) -> EventType:
        """Whether somebody should look."""
        return EventType.WARNING if self.reason in WARNINGS else EventType.NORMAL


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """One as the store has it; `event` is the last of them where it happened again."""

    id: int  # grows; one that happens again has a new one
    event: Event
    count: int
    first_at: datetime


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events are asked for; empty: whichever."""

    kind: str = ""
    name: str = ""
    deployment: str = ""
    reason: str = ""
    type: str = ""
    since: datetime | None = None

    @property
    def words(self) -> Mapping[str, str]:
        """What has to be equal, by the name of what it is."""
        named = ("kind", "name", "deployment", "reason", "type")
        return MappingProxyType({each: said for each in named if (said := getattr(self, each))})


@dataclass(frozen=True, slots=True)
class EventPage:
    """What was asked for, oldest first, and how far it reaches."""

    events: tuple[KeptEvent, ...]
    newest: int  # the highest id that was given; 0: none was
    forgotten: int  # the highest id of those that are kept no longer; 0: all are kept
