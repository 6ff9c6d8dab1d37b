"""The memory of a node agent: one small file for each replica, so that its successor can adopt.

A file is replaced whole and atomically; a reader sees the old one or the new one. Only the agent
that holds the data directory's lock reads and writes here.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from penstock.control.data_dir import logs_path
from penstock.control.errors import InvalidInput
from penstock.control.node_agent.replica_record import (
    AdapterFailure,
    HeldAdapter,
    Phase,
    ReplicaRecord,
)
from penstock.control.state.fleet.replica import ReplicaStart, StartKind, StartStage
from penstock.v1 import nodes_pb2

log = logging.getLogger(__name__)

# `spec` is written in its own way; when it starts next is not kept: it is tried at once.
KEPT = tuple(each.name for each in fields(ReplicaRecord) if each.name not in ("spec", "next_start"))
TIMES = ("started_at", "ready_at", "stop_by")
# Ids become file names.
REPLICA_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class StateFiles:
    """Remembers records under `DIR/replicas`, and says where each replica logs."""

    def __init__(self, data_dir: Path) -> None:
        self._replicas = data_dir / "replicas"
        self._logs = logs_path(data_dir)
        with suppress(OSError):  # told when something is to be written
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
            except (ValueError, KeyError, TypeError, InvalidInput, json_format.ParseError) as error:
                log.error("cannot read %s, set aside: %s", path, error)
                with suppress(OSError):
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
    said = {name: getattr(record, name) for name in KEPT}
    spec = json_format.MessageToDict(record.spec, preserving_proto_field_name=True)
    return {"spec": spec} | {name: _written(each) for name, each in said.items()}


def _written(value: object) -> object:
    if isinstance(value, ReplicaStart):
        return [value.kind, value.reason, value.stages]
    return value.isoformat() if isinstance(value, datetime) else value


def _from_json(data: dict[str, Any]) -> ReplicaRecord:
    """Files of older agents lack fields, those of newer ones have more."""
    spec = json_format.ParseDict(data["spec"], nodes_pb2.ReplicaSpec(), ignore_unknown_fields=True)
    checked(spec.replica_id)
    own: dict[str, Any] = {
        "phase": Phase(data["phase"]),
        "adapters": tuple(HeldAdapter(*each) for each in data.get("adapters", ())),
        "failed_adapters": tuple(AdapterFailure(*e) for e in data.get("failed_adapters", ())),
        "start": _start(*data.get("start", ())),
        **{name: _moment(data.get(name)) for name in TIMES},
    }
    kept: dict[str, Any] = {
        name: tuple(data[name]) if isinstance(data[name], list) else data[name]
        for name in KEPT
        if name in data
    }
    return ReplicaRecord(spec=spec, **(kept | own))


def _start(kind: str = "", reason: str = "", stages: Iterable[Any] = ()) -> ReplicaStart:
    return ReplicaStart(StartKind(kind), reason, tuple(StartStage(*each) for each in stages))


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
