"""What stands in a replica's log. Blocks: for a thread.

A log is the segments that it was cut into, and the file that is written to now (`log_files.py`).
Each run of the replica begins with a line of its agent's (`replica_log.begin`), which tells runs
apart wherever segments were cut or joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from penstock.control.log_files import SMALL_BYTES, segments, size
from penstock.control.machine_logs.following import MOST_PART
from penstock.control.machine_logs.sources import REPLICA_BEGINS

MOST_BACKLOG: Final = 1 << 20  # bytes of what was written before

_BEGINNING: Final = re.compile(rb"^" + re.escape(REPLICA_BEGINS.encode()), re.M)


class Piece(NamedTuple):
    """A part of a file of a log."""

    path: Path
    start: int
    end: int


def runs(log: Path) -> Iterator[list[Piece]]:
    """Each run of the replica, the newest first; its pieces in the order of writing."""
    pieces: list[Piece] = []
    for path in (log, *reversed(segments(log))):
        end = size(path)
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
    return bool(_BEGINNING.match(_bytes(path, start, start + len(REPLICA_BEGINS.encode()))))


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


def _beginnings(path: Path, end: int) -> list[int]:
    """Where runs begin. Only small files are joined, so a larger one has one at its beginning or
    none."""
    read = end if end <= SMALL_BYTES else len(REPLICA_BEGINS)
    return [found.start() for found in _BEGINNING.finditer(_bytes(path, 0, read))]


def _bytes(path: Path, start: int, end: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(end - start)
    except OSError:  # thrown away meanwhile
        return b""
