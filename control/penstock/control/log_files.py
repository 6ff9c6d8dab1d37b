"""The log files of processes that we start: the previous one kept, never without bounds."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

TAIL_BYTES = 64 * 1024
MAX_LOG_BYTES = 64 * 1024 * 1024
LEAST_ROOM = 64 * 1024


def begin(path: Path) -> str:
    """Makes room for the log of a new process; the last one stays beside it as `.1`.

    Returns what `unwritable` does.
    """
    with suppress(OSError):
        if path.exists():
            path.replace(_previous(path))
    return unwritable(path)


def unwritable(path: Path) -> str:
    """Why nothing can be written there; empty where it can. No process is the less started for
    that: its output goes nowhere."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
    except OSError as error:
        return f"{path} cannot be written, output is dropped: {error.strerror}"
    return ""


def bound(path: Path, max_bytes: int = MAX_LOG_BYTES) -> None:
    """Starts a log over that grew too long; what it held stays beside it as `.1`.

    Its writer appends, so it goes on at the beginning. What it writes in the moment of the copy is
    lost; so is the copy where the disk is full, for then room matters more. Where nothing can be
    written at all, nothing is.
    """
    with suppress(OSError):
        if path.stat().st_size <= max_bytes:
            return
        try:
            shutil.copyfile(path, _previous(path))
        except OSError:
            _previous(path).unlink(missing_ok=True)
        with path.open("r+b") as log:
            log.truncate()


def tail(path: Path, lines: int) -> list[str]:
    """The last lines that say something; none if there is no log."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - TAIL_BYTES))
            text = log.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()][-lines:]


def no_room(path: Path) -> bool:
    """Whether the disk of a log is full."""
    try:
        return shutil.disk_usage(path.parent).free < LEAST_ROOM
    except OSError:
        return False


def _previous(path: Path) -> Path:
    return path.with_name(path.name + ".1")
