"""What stands in a replica's log, and what is written next. Blocks: for a thread.

A log is the segments that it was cut into, and the file that is written to now (`log_files.py`).
Each run of the replica begins with a line of its agent's (`replica_log.begin`), which tells runs
apart wherever segments were cut or joined.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from penstock.control.log_files import SMALL_BYTES, alone, segments
from penstock.control.node_agent.replica_log import BEGINNING
from penstock.control.state.providers.secret_texts import without_secrets

MOST_BACKLOG: Final = 1 << 20  # bytes of what was written before
MOST_PART: Final = 64 << 10  # bytes that are read at a time; a longer line is told as several
CUT: Final = "lines are missing here: the log was cut, and what it held is gone"

_BEGINNING: Final = re.compile(rb"^" + re.escape(BEGINNING.encode()), re.M)


class Piece(NamedTuple):
    """A part of a file of a log."""

    path: Path
    start: int
    end: int


def runs(log: Path) -> Iterator[list[Piece]]:
    """Each run of the replica, the newest first; its pieces in the order of writing."""
    pieces: list[Piece] = []
    for path in (log, *reversed(segments(log))):
        end = _size(path)
        for start in reversed(_beginnings(path, end)):
            yield [Piece(path, start, end), *pieces]
            pieces, end = [], start
        if end:
            pieces.insert(0, Piece(path, 0, end))
    if pieces:
        yield pieces


def is_marked(run: Sequence[Piece]) -> bool:
    """Whether it begins as an agent begins it."""
    path, start, _ = run[0]
    return bool(_BEGINNING.match(_bytes(path, start, start + len(BEGINNING.encode()))))


def run_before(log: Path) -> list[Piece] | None:
    """The run before the newest; None where none is kept."""
    return next(islice(runs(log), 1, 2), None)


def last_lines(pieces: Sequence[Piece], most: int) -> tuple[bytes, bool]:
    """The last `most` lines of a run, and whether there are fewer because they are too long."""
    data, left = b"", MOST_BACKLOG
    for path, start, end in reversed(pieces):
        begin = max(start, end - left)
        data, left = _bytes(path, begin, end) + data, left - (end - begin)
        if begin > start:  # not from a line's beginning
            data = data[data.find(b"\n") + 1 :]
        if not left or data.count(b"\n") > most:
            break
    lines = data.splitlines(keepends=True)
    return b"".join(lines[-most:] if most else ()), not left and len(lines) < most


class Following:
    """What is written to a log from a moment on, wherever the log is cut or set aside meanwhile."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._file: BinaryIO | None = None
        self._at = 0
        self._segment = ""  # the newest, when we last looked
        self._cut_off: deque[tuple[BinaryIO, int]] = deque()  # and where each ends
        self.missing = False  # lines, since this was last set to false
        self._open()
        self._at = self._length()

    @property
    def begins_at(self) -> int:
        """How much was written before, to the file that is written to now."""
        return self._at

    def read(self) -> bytes:
        """Some of what was written since; empty where that is nothing."""
        if data := self._of_cut_off():
            return data
        if self._file is None:
            self._open()
            return b""
        moved = self._is_moved(self._file)
        if not moved and not self._goes_on(self._file):
            return self._of_cut_off()
        data = os.pread(self._file.fileno(), MOST_PART, self._at)
        self._at += len(data)
        if moved and not data:
            self.close()
            self._open()
        return data

    def close(self) -> None:
        """Lets go of the files."""
        for file in (self._file, *(cut for cut, _ in self._cut_off)):
            if file is not None:
                file.close()
        self._file = None
        self._cut_off.clear()

    def _open(self) -> None:
        newest = segments(self._log)[-1:]
        self._segment, self._at = (newest[0].name if newest else ""), 0
        with suppress(OSError):
            self._file = self._log.open("rb")

    def _goes_on(self, file: BinaryIO) -> bool:
        """Whether it was not cut since we last looked; else the rest is taken from the segments."""
        if not self._newer() and self._length() >= self._at:
            return True
        try:
            with alone(self._log.parent):  # whoever cuts has done it, or has not begun
                newer = self._newer()
                self.missing |= not newer
                for path in newer:
                    cut = path.open("rb")
                    cut.seek(self._at)
                    self._cut_off.append((cut, _size(path)))
                    self._at, self._segment = 0, path.name
                self._at = 0
        except BlockingIOError:
            return False
        except OSError:
            self.missing = True
        return False

    def _newer(self) -> list[Path]:
        return [path for path in segments(self._log) if path.name > self._segment]

    def _of_cut_off(self) -> bytes:
        while self._cut_off:
            file, end = self._cut_off[0]
            if data := file.read(min(MOST_PART, max(0, end - file.tell()))):
                return data
            file.close()
            self._cut_off.popleft()
        return b""

    def _is_moved(self, file: BinaryIO) -> bool:
        """Whether another file is there now, or none: a new process is started, or about to be."""
        try:
            return os.stat(self._log).st_ino != os.fstat(file.fileno()).st_ino
        except OSError:
            return True

    def _length(self) -> int:
        return os.fstat(self._file.fileno()).st_size if self._file else 0


class WholeLines:
    """Puts what is read together to lines, as they may be shown."""

    def __init__(self) -> None:
        self._begun = b""

    def of(self, data: bytes, *, last: bool = False) -> bytes:
        """The lines that are whole by now; of the `last` data all of it."""
        data = self._begun + data
        end = data.rfind(b"\n") + 1
        if last or (not end and len(data) >= MOST_PART):
            data = data if data.endswith(b"\n") or not data else data + b"\n"
            end = len(data)
        self._begun = data[end:]
        return without_secrets(data[:end].decode("utf-8", "replace")).encode()


def parts(data: bytes) -> Iterator[bytes]:
    """Lines in parts that are not much longer than one may be."""
    lines, length = [], 0
    for line in data.splitlines(keepends=True):
        lines.append(line)
        length += len(line)
        if length >= MOST_PART:
            yield b"".join(lines)
            lines, length = [], 0
    if lines:
        yield b"".join(lines)


def _beginnings(path: Path, size: int) -> list[int]:
    """Where runs begin. Only small files are joined, so a larger one has one at its beginning or
    none."""
    read = size if size <= SMALL_BYTES else len(BEGINNING)
    return [found.start() for found in _BEGINNING.finditer(_bytes(path, 0, read))]


def _bytes(path: Path, start: int, end: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(end - start)
    except OSError:  # thrown away meanwhile
        return b""


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
