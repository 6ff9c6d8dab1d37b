"""What a node agent knows of one replica: an immutable value, and the table of its phases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from penstock.control.declared.messages import message_of
from penstock.control.errors import Code, PenstockError
from penstock.control.state.fleet.replica import ReplicaAddress, ReplicaStart, StartStage
from penstock.v1 import inference_pb2, nodes_pb2


class Phase(StrEnum):
    """The life of a replica; the words of `ReplicaPhase` in nodes.proto."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    ASLEEP = "asleep"  # its devices are free for others; woken, it is starting
    BACKOFF = "backoff"
    FAILED = "failed"
    STOPPED = "stopped"


TRANSITIONS: dict[Phase, frozenset[Phase]] = {
    Phase.STARTING: frozenset(
        {Phase.READY, Phase.DRAINING, Phase.BACKOFF, Phase.FAILED, Phase.STOPPED}
    ),
    Phase.READY: frozenset({Phase.DRAINING, Phase.BACKOFF, Phase.FAILED, Phase.STOPPED}),
    # Somebody else may have told the process to drain: then it ends unasked and starts again.
    Phase.DRAINING: frozenset({Phase.ASLEEP, Phase.BACKOFF, Phase.FAILED, Phase.STOPPED}),
    Phase.ASLEEP: frozenset({Phase.STARTING, Phase.DRAINING, Phase.STOPPED}),
    Phase.BACKOFF: frozenset({Phase.STARTING, Phase.FAILED, Phase.STOPPED}),
    Phase.FAILED: frozenset({Phase.STOPPED}),
    Phase.STOPPED: frozenset(),
}


NOT_STARTED = ReplicaStart()


class HeldAdapter(NamedTuple):
    """An adapter that a process told it holds."""

    name: str  # "name@version"
    digest: str


class AdapterFailure(NamedTuple):
    """An adapter that a process told it could not load."""

    name: str
    digest: str
    reason: str  # one line for a person


@dataclass(frozen=True, slots=True)
class ReplicaRecord:
    """One replica: how to run it, and how it fares."""

    spec: nodes_pb2.ReplicaSpec  # as it was received, with the adapters that it is to hold now
    phase: Phase = Phase.STARTING
    pid: int = 0  # 0: no process
    process_started_at: float = 0.0  # seconds since boot: names the process together with its pid
    started_at: datetime | None = None  # of the running process
    ready_at: datetime | None = None  # of the running process; None: not ready yet
    next_start: datetime | None = None  # in phase backoff
    address: str = ""  # host:port of its Inference service; empty: not registered yet
    max_model_len: int = 0  # tokens; 0: not known yet
    capacity: int = 0  # calls it runs at once; 0: not known yet
    endpoints: tuple[str, ...] = ()  # paths that its model serves; empty: not known yet
    restarts: int = 0
    failures: int = 0  # in a row: what the restart policy counts
    exit_code: int = 0  # of the last process that ended
    last_error: str = ""  # why the last process ended; stays when the next one is ready
    stop_by: datetime | None = None  # until when running calls have time; None: not to be stopped
    adapters: tuple[HeldAdapter, ...] = ()  # of the running process
    failed_adapters: tuple[AdapterFailure, ...] = ()  # of the running process
    adapter_slots: int = 0  # adapters that it can hold at once; 0: none, or not known yet
    max_adapter_rank: int = 0  # 0: not known
    own_token: bool = False  # of the running process; false: an older agent gave it the cluster's
    start: ReplicaStart = NOT_STARTED  # how the running process came to be
    dropped_adapters: tuple[str, ...] = ()  # to be unloaded, and the process does not know it yet
    wakes: int = 0  # of the running process
    wake_ms: int = 0  # milliseconds that the last of them took
    microserving_rest: str = ""  # host:port of its REST; empty: none, or not registered yet
    resumes: bool = False  # it goes on with answers that others began
    no_resume: str = ""  # why not; empty: it does, or that is not known yet
    resume_test_failed: bool = False  # and that is a fault

    def advance(self, phase: Phase) -> ReplicaRecord:
        """The record in another phase. Refuses a step that the table does not have."""
        if phase is not self.phase and phase not in TRANSITIONS[self.phase]:
            raise PenstockError(
                f"replica {self.spec.replica_id} cannot go from {self.phase} to {phase}",
                Code.IMPOSSIBLE_TRANSITION,
            )
        return replace(self, phase=phase)

    def start_waits(self, by: datetime) -> bool:
        """Whether a process of it starts, or is to be started by then."""
        due = self.next_start is None or self.next_start <= by
        return self.phase is Phase.STARTING or (self.phase is Phase.BACKOFF and due)

    @property
    def where(self) -> ReplicaAddress:
        """How its process is called."""
        return ReplicaAddress(self.spec.replica_id, self.address, self.own_token)

    @property
    def adapter_digests(self) -> frozenset[str]:
        """Of every adapter that it holds or is to hold."""
        told = (each.digest for each in self.adapters)
        wanted = (each.digest for each in self.spec.adapters)
        return frozenset(filter(None, (*told, *wanted)))


def identity(spec: nodes_pb2.ReplicaSpec) -> tuple[str, str, str]:
    """What tells whether two orders are for the same replica."""
    return (spec.deployment, spec.deployment_uid, spec.template_digest)


def made_for(spec: nodes_pb2.ReplicaSpec) -> str:
    """What an order is for, for a person."""
    uid, digest = spec.deployment_uid or "none", spec.template_digest[:12] or "none"
    return f"deployment {spec.deployment} (uid {uid}, template {digest})"


NO_PROCESS: Mapping[str, Any] = MappingProxyType(
    {
        "pid": 0,
        "address": "",
        "adapters": (),
        "failed_adapters": (),
        "start": NOT_STARTED,
        "wakes": 0,
        "wake_ms": 0,
        "microserving_rest": "",
        "resumes": False,
        "no_resume": "",
        "resume_test_failed": False,
    }
)
"""What a record says while nothing of the replica runs."""


def as_registered(
    record: ReplicaRecord, call: nodes_pb2.RegisterReplicaRequest
) -> Mapping[str, Any]:
    """What a record says anew once its process has told this; what it left out stays."""
    stages = tuple(StartStage(each.name, each.ms) for each in call.stages)
    return {
        "start": replace(record.start, stages=stages or record.start.stages),
        "address": call.address,
        "microserving_rest": call.microserving_rest,
        "resumes": call.resumes,
        "no_resume": call.no_resume,
        "resume_test_failed": call.resume_test_failed,
        "max_model_len": call.max_model_len or record.max_model_len,
        "capacity": call.capacity or record.capacity,
        "endpoints": tuple(call.endpoints) or record.endpoints,
        "adapters": tuple(HeldAdapter(a.name, a.digest) for a in call.adapters),
        "failed_adapters": tuple(
            AdapterFailure(f.name, f.digest, f.reason) for f in call.failed_adapters
        ),
        "adapter_slots": call.adapter_slots or record.adapter_slots,
        "max_adapter_rank": call.max_adapter_rank or record.max_adapter_rank,
    }


def to_status(record: ReplicaRecord, log_path: Path) -> nodes_pb2.ReplicaStatus:
    """The record as the head is told it."""
    return message_of(
        nodes_pb2.ReplicaStatus,
        record,
        record.spec,
        phase=f"REPLICA_PHASE_{record.phase.name}",
        started_at_ms=_milliseconds(record.started_at),
        next_start_ms=_milliseconds(record.next_start),
        log_path=str(log_path),
        adapters=[each.name for each in record.adapters],
        adapter_digests=[each.digest for each in record.adapters],
        failed_adapters=[
            inference_pb2.AdapterFailure(**each._asdict()) for each in record.failed_adapters
        ],
        ready_at_ms=_milliseconds(record.ready_at),
        start=_started(record.start),
    )


def _started(start: ReplicaStart) -> nodes_pb2.ReplicaStart:
    stages = [nodes_pb2.StartStage(**each._asdict()) for each in start.stages]
    kind = f"START_KIND_{start.kind.name.replace('UNTOLD', 'UNSPECIFIED')}"
    return nodes_pb2.ReplicaStart(kind=kind, reason=start.reason, stages=stages)


def _milliseconds(moment: datetime | None) -> int:
    return int(moment.timestamp() * 1000) if moment else 0
