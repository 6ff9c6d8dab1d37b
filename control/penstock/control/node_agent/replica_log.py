"""What a replica's log says of its end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from penstock.control.log_files import tail

ERROR_PREFIX = "penstock-replica: error: "
# How Python ends a traceback: "ValueError: ..." or "package.module.SomeError: ...".
EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit)(: |$)")
LONGEST_ERROR = 500  # characters
BAD = frozenset(("warning", "error", "critical"))


def last_error(path: Path) -> str:
    """Why the process says that it ended, in one line; empty if it says nothing.

    That is its own last `penstock-replica: error:` line. A process that died without one has at
    best a traceback, whose last line names the exception.
    """
    lines = tail(path, 1000)
    for line in reversed(lines):
        if line.startswith(ERROR_PREFIX):
            return line.removeprefix(ERROR_PREFIX)[:LONGEST_ERROR]
    if lines and EXCEPTION.match(lines[-1]):
        return lines[-1][:LONGEST_ERROR]
    return ""


def last_words(path: Path) -> str:
    """What a process said last that was ended by others, in one line: why it cannot go on, else
    what was bad, else what it was at; empty if it said nothing."""
    if said := last_error(path):
        return said
    records = list(_records(tail(path, 1000)))
    bad = [record for record in records if record.get("level") in BAD]
    for record in (bad or records)[-1:]:
        traceback = str(record.get("exc_info", "")).splitlines()
        return " ".join([str(record.get("message", "")), *traceback[-1:]])[:LONGEST_ERROR]
    return ""


def _records(lines: Iterable[str]) -> Iterable[dict[str, object]]:
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record
