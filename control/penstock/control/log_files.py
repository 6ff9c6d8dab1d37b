"""The log files of processes that we start: what was is kept, never without bounds.

`NAME.log` is what a process writes now. What was before it lies beside it in segments, each named
by when it was written last, `NAME.log.20260131T120000.123Z`, which nobody writes to any more.
"""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from penstock.control.settings import LogRetention

TAIL_BYTES = 64 * 1024
LEAST_FREE = 64 * 1024
# Up to here what one start after the other said goes into one segment.
SMALL_BYTES = 1 << 20
# That nobody writes to, in one folder: each replica has a name of its own, and leaves a file.
MOST_FILES = 1000


def opened(path: Path) -> BinaryIO:
    """The log, to be appended to, or nowhere: a disk that takes nothing is no reason to serve
    nothing. As long as some process has it open, `sweep` knows that it is written to."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        log = path.open("ab")
    except OSError:
        return Path(os.devnull).open("ab")
    with suppress(OSError):  # a file system without locks: its age tells as well
        fcntl.flock(log, fcntl.LOCK_SH)  # `sweep` holds it for a moment at most
    return log


def begin(path: Path) -> str:
    """Makes room for the log of a new process; the last one becomes a segment.

    Returns what `unwritable` does.
    """
    with suppress(OSError):
        if path.stat().st_size:
            _set_aside(path)
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


def tail(path: Path, lines: int) -> list[str]:
    """The last lines that say something; none if there is no log."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - TAIL_BYTES))
            text = log.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()][-lines:]


def segments(log: Path) -> list[Path]:
    """What was written before, the oldest first."""
    return sorted(log.parent.glob(f"{glob.escape(log.name)}.*Z"), key=lambda path: path.name)


def size(path: Path) -> int:
    """Bytes of a file; 0 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def disk_full(path: Path) -> bool:
    """Whether the disk of a log is full."""
    try:
        return shutil.disk_usage(path.parent).free < LEAST_FREE
    except OSError:
        return False


def sweep(folder: Path, keep: LogRetention, now: datetime) -> None:
    """Cuts logs that grew too long into segments, and throws away what is too old or too much.

    Several processes may look after a folder: one of them does at a time, the others leave it be.
    """
    with suppress(OSError), alone(folder):
        for log in folder.glob("*.log"):
            with suppress(OSError):
                if log.stat().st_size > keep.segment_bytes:
                    _cut(log)
        closed, open_bytes = _sorted_out(folder)
        surplus = [file.path for file in _surplus(closed, keep, now, open_bytes)]
        held = _open_files() if surplus else frozenset()
        for path in surplus:
            with suppress(OSError):
                if os.path.realpath(path) not in held:
                    path.unlink()


@dataclass(frozen=True, slots=True)
class _Closed:
    """A file that nobody writes to."""

    path: Path
    size: int
    written: float  # last, seconds of the epoch
    of: str  # the log that it is a part of; empty: of processes that are gone


def _surplus(
    closed: list[_Closed], keep: LogRetention, now: datetime, open_bytes: int
) -> Iterator[_Closed]:
    """What is to go: the old, and the oldest of very many; then the oldest of the log that has the
    most, so that one which is written to much takes no room from the others."""
    oldest = (now - keep.longest).timestamp()
    queues: dict[str, deque[_Closed]] = defaultdict(deque)
    sizes: Counter[str] = Counter()
    in_order = sorted(closed, key=lambda each: each.written)
    for index, file in enumerate(in_order):
        too_many = len(in_order) - index > MOST_FILES
        if file.written < oldest or too_many or not keep.most_bytes:
            yield file
            continue
        queues[file.of].append(file)
        sizes[file.of] += file.size
    while sizes and open_bytes + sizes.total() > keep.most_bytes:
        largest = max(sizes, key=lambda of: sizes[of])
        file = queues[largest].popleft()
        sizes[largest] -= file.size
        if not queues[largest]:
            del sizes[largest]
        yield file


def _sorted_out(folder: Path) -> tuple[list[_Closed], int]:
    """What nobody writes to, and how long the logs are that somebody does."""
    logs = list(folder.glob("*.log"))
    living = {log.name for log in logs if _is_written(log)}
    closed = []
    for path in {*logs, *folder.glob("*.log.*")} - {folder / name for name in living}:
        with suppress(OSError):
            about, of = path.stat(), path.name.rpartition(".log.")[0] + ".log"
            closed.append(_Closed(path, about.st_size, about.st_mtime, of if of in living else ""))
    return closed, sum(size(folder / name) for name in living)


def _is_written(log: Path) -> bool:
    """Whether a process has it open that took it by `opened`."""
    try:
        with log.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _open_files() -> frozenset[str]:
    """What processes of this machine have open, as far as we may see: a lock tells nothing of one
    that an older version started, nor on a file system without locks."""
    found = set()
    for descriptor in glob.iglob("/proc/[0-9]*/fd/*"):
        with suppress(OSError):
            found.add(os.readlink(descriptor))
    return frozenset(found)


def _cut(log: Path) -> None:
    """Its writer appends, so it goes on at the beginning. Where the disk is full what it held is
    lost, for then room matters more."""
    segment = _segment(log)
    try:
        with log.open("rb") as source, segment.open("xb") as copy:
            shutil.copyfileobj(source, copy, SMALL_BYTES)  # to its end, as it is by then
            os.truncate(log, 0)
    except OSError:
        segment.unlink(missing_ok=True)
        os.truncate(log, 0)


def _set_aside(log: Path) -> None:
    """Makes a segment of it, or a part of the one before where both are small."""
    segment, before = _segment(log), next(reversed(segments(log)), None)
    if before is None or size(before) + size(log) > SMALL_BYTES:
        log.rename(segment)
        return
    try:
        with before.open("ab") as whole:
            whole.write(log.read_bytes())
        log.unlink()
        before.rename(segment)
    except OSError:
        log.rename(segment)


def _segment(log: Path) -> Path:
    """A new name, by when it was written last."""
    written = datetime.fromtimestamp(log.stat().st_mtime, UTC)
    while True:
        stamp = written.isoformat(timespec="milliseconds").translate(str.maketrans("", "", "-:"))
        path = log.with_name(f"{log.name}.{stamp.removesuffix('+0000')}Z")
        if not path.exists():
            return path
        written += timedelta(milliseconds=1)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Raises `OSError` while another process looks after it."""
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(directory)
