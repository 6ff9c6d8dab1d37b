"""The memory of a node agent: one small file for each replica, so that its successor can adopt.

A file is replaced whole and atomically; a reader sees the old one or the new one. Only the agent
that holds the data directory's lock reads and writes here.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from penstock.control.errors import InvalidInput
from penstock.control.node_agent.replica_record import Phase, ReplicaRecord
from penstock.v1 import nodes_pb2

log = logging.getLogger(__name__)

# Ids become file names.
REPLICA_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class StateFiles:
    """Remembers records under `DIR/replicas`, and says where each replica logs."""

    def __init__(self, data_dir: Path) -> None:
        self._replicas = data_dir / "replicas"
        self._logs = data_dir / "logs"
        self._replicas.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(parents=True, exist_ok=True)

    def log_path(self, replica_id: str) -> Path:
        """Where the replica's stdout and stderr go. Raises `InvalidInput` for an unfit id."""
        return self._logs / f"{checked(replica_id)}.log"

    def save(self, record: ReplicaRecord) -> None:
        """Replaces what was remembered of this replica."""
        path = self._path(record.spec.replica_id)
        draft = path.with_suffix(".tmp")
        draft.write_text(json.dumps(_to_json(record), indent=1) + "\n")
        os.replace(draft, path)

    def forget(self, replica_id: str) -> None:
        """The replica was stopped for good."""
        self._path(replica_id).unlink(missing_ok=True)

    def load(self) -> Iterator[ReplicaRecord]:
        """Every record; a file that cannot be read is set aside as `.unreadable`."""
        for path in sorted(self._replicas.glob("*.json")):
            try:
                yield _from_json(json.loads(path.read_text()))
            except (ValueError, KeyError, TypeError, json_format.ParseError) as error:
                log.error("cannot read %s, set aside: %s", path, error)
                path.rename(path.with_suffix(".unreadable"))

    def _path(self, replica_id: str) -> Path:
        return self._replicas / f"{checked(replica_id)}.json"


def checked(replica_id: str) -> str:
    """The id, if it can be a file name. Raises `InvalidInput`."""
    if not REPLICA_ID.fullmatch(replica_id):
        raise InvalidInput(
            f"replica id {replica_id!r}: letters, digits, '.', '_' and '-' only, 128 at most"
        )
    return replica_id


def _to_json(record: ReplicaRecord) -> dict[str, object]:
    return {
        "spec": json_format.MessageToDict(record.spec, preserving_proto_field_name=True),
        "phase": record.phase,
        "pid": record.pid,
        "process_started_at": record.process_started_at,
        "started_at": record.started_at.isoformat() if record.started_at else None,
        "address": record.address,
        "max_model_len": record.max_model_len,
        "capacity": record.capacity,
        "restarts": record.restarts,
        "failures": record.failures,
        "exit_code": record.exit_code,
        "last_error": record.last_error,
    }


def _from_json(data: dict[str, Any]) -> ReplicaRecord:
    fields = dict(data)
    spec = json_format.ParseDict(fields.pop("spec"), nodes_pb2.ReplicaSpec())
    checked(spec.replica_id)
    started_at: str | None = fields.pop("started_at")
    return ReplicaRecord(
        spec=spec,
        phase=Phase(fields.pop("phase")),
        started_at=datetime.fromisoformat(started_at) if started_at else None,
        **fields,
    )
