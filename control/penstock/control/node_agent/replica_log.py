"""The log file of a replica: one per start, the previous one kept, never without bounds."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

ERROR_PREFIX = "penstock-replica: error: "
# How Python ends a traceback: "ValueError: ..." or "package.module.SomeError: ...".
EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit)(: |$)")
TAIL_BYTES = 64 * 1024
LONGEST_ERROR = 500  # characters
MAX_LOG_BYTES = 64 * 1024 * 1024


def begin(path: Path) -> None:
    """Makes room for the log of a new process; the last one stays beside it as `.1`."""
    if path.exists():
        path.replace(_previous(path))


def bound(path: Path, max_bytes: int = MAX_LOG_BYTES) -> None:
    """Starts a log over that grew too long. Its writer appends, so it goes on at the beginning."""
    try:
        if path.stat().st_size > max_bytes:
            shutil.copyfile(path, _previous(path))
            with path.open("r+b") as log:
                log.truncate()
    except FileNotFoundError:
        return


def tail(path: Path, lines: int) -> list[str]:
    """The last lines that say something; none if there is no log."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - TAIL_BYTES))
            text = log.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()][-lines:]


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


def _previous(path: Path) -> Path:
    return path.with_name(path.name + ".1")
