"""What a node agent knows of one replica: an immutable value, and the table of its phases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from penstock.control.errors import ImpossibleTransition
from penstock.v1 import nodes_pb2


class Phase(StrEnum):
    """The life of a replica; the words of `ReplicaPhase` in nodes.proto."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    BACKOFF = "backoff"
    FAILED = "failed"
    STOPPED = "stopped"


TRANSITIONS: dict[Phase, frozenset[Phase]] = {
    Phase.STARTING: frozenset(
        {Phase.READY, Phase.DRAINING, Phase.BACKOFF, Phase.FAILED, Phase.STOPPED}
    ),
    Phase.READY: frozenset({Phase.DRAINING, Phase.BACKOFF, Phase.FAILED, Phase.STOPPED}),
    # Somebody else may have told the process to drain: then it ends unasked and starts again.
    Phase.DRAINING: frozenset({Phase.BACKOFF, Phase.FAILED, Phase.STOPPED}),
    Phase.BACKOFF: frozenset({Phase.STARTING, Phase.FAILED, Phase.STOPPED}),
    Phase.FAILED: frozenset({Phase.STOPPED}),
    Phase.STOPPED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class ReplicaRecord:
    """One replica: how to run it, and how it fares."""

    spec: nodes_pb2.ReplicaSpec  # never changed after it was received
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

    def advance(self, phase: Phase) -> ReplicaRecord:
        """The record in another phase. Refuses a step that the table does not have."""
        if phase is not self.phase and phase not in TRANSITIONS[self.phase]:
            raise ImpossibleTransition(
                f"replica {self.spec.replica_id} cannot go from {self.phase} to {phase}"
            )
        return replace(self, phase=phase)


def to_status(record: ReplicaRecord, log_path: Path) -> nodes_pb2.ReplicaStatus:
    """The record as the head is told it."""
    serving = record.phase in (Phase.READY, Phase.DRAINING)
    return nodes_pb2.ReplicaStatus(
        replica_id=record.spec.replica_id,
        deployment=record.spec.deployment,
        deployment_uid=record.spec.deployment_uid,
        template_digest=record.spec.template_digest,
        revision=record.spec.revision,
        devices=record.spec.devices,
        phase=f"REPLICA_PHASE_{record.phase.name}",
        address=record.address,
        pid=record.pid,
        restarts=record.restarts,
        exit_code=record.exit_code,
        last_error=record.last_error,
        started_at_ms=_milliseconds(record.started_at),
        next_start_ms=_milliseconds(record.next_start),
        log_path=str(log_path),
        max_model_len=record.max_model_len,
        capacity=record.capacity,
        endpoints=record.endpoints,
        adapters=[adapter.name for adapter in record.spec.adapters] if serving else [],
        ready_at_ms=_milliseconds(record.ready_at),
    )


def _milliseconds(moment: datetime | None) -> int:
    return int(moment.timestamp() * 1000) if moment else 0
