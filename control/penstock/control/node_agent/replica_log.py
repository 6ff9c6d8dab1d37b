"""A replica's log: where a process of it begins, and what it says of its end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from penstock.control import log_files
from penstock.control.log_files import tail
from penstock.control.machine_logs.sources import REPLICA_BEGINS
from penstock.control.state.providers.secret_texts import without_secrets

ERROR_PREFIX = "penstock-replica: error: "
# How Python ends a traceback: "ValueError: ..." or "package.module.SomeError: ...".
EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit)(: |$)")
LONGEST_ERROR = 500  # characters
BAD = frozenset(("warning", "error", "critical"))


def begin(path: Path, replica_id: str, now: datetime) -> str:
    """Makes room for the log of a new process, whose first line tells it from those before.
    Returns what `log_files.unwritable` does."""
    unlogged = log_files.begin(path)
    time = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    said = {"level": "info", "replica_id": replica_id, "time": time}
    with suppress(OSError), path.open("a") as log:
        log.write(f"{REPLICA_BEGINS}{json.dumps(said)[1:]}\n")
    return unlogged


def last_error(path: Path) -> str:
    """Why the process says that it ended, in one line; empty if it says nothing.

    That is its own last `penstock-replica: error:` line. A process that died without one has at
    best a traceback, whose last line names the exception.
    """
    lines = tail(path, 1000)
    for line in reversed(lines):
        if line.startswith(ERROR_PREFIX):
            return _told(line.removeprefix(ERROR_PREFIX))
    if lines and EXCEPTION.match(lines[-1]):
        return _told(lines[-1])
    return ""


def last_words(path: Path) -> str:
    """What a process said last, in one line: why it cannot go on, else what was bad, else what it
    was at, in our form or in any; empty if it said nothing."""
    if said := last_error(path):
        return said
    lines = [line for line in tail(path, 1000) if not line.startswith(REPLICA_BEGINS)]
    records = list(_records(lines))
    bad = [record for record in records if record.get("level") in BAD]
    for record in (bad or records)[-1:]:
        traceback = str(record.get("exc_info", "")).splitlines()
        return _told(" ".join([str(record.get("message", "")), *traceback[-1:]]))
    return _told(lines[-1]) if lines else ""


def _told(line: str) -> str:
    return without_secrets(line)[:LONGEST_ERROR]


def _records(lines: Iterable[str]) -> Iterable[dict[str, object]]:
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record
