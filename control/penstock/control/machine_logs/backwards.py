"""The lines of one log from its end to its beginning. Blocks: for a thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from penstock.control.log_files import segments, size
from penstock.control.machine_logs.lines import logged, micros, naming, time_of
from penstock.control.machine_logs.values import LoggedLine, LogQuestion, Source

BLOCK: Final = 256 << 10  # bytes that are read at a time; a longer line is told as several
_MOST_TIMELESS: Final = 1000  # lines in a row that wait for the time of one before them


class Stopped(Exception):
    """Nobody waits for it any more."""


class _Piece(NamedTuple):
    path: Path
    end: int


def lines_back(
    source: Source, end: int | None, asked: LogQuestion, stopped: Callable[[], bool]
) -> Iterator[LoggedLine]:
    """Those that are asked for, the newest first, of what was written until `end` of the log as it
    is now; None: all of it. Raises `Stopped`."""
    names, timeless = naming(asked.ids), list[str]()
    latest = _written_at(source.path)
    for block in _blocks(_pieces(source.path, end, asked.since_us)):
        if stopped():
            raise Stopped
        if not (timeless or names(block)):
            if asked.since_us and _first_time(block) < asked.since_us:
                break
            continue
        for raw in reversed(block.split(b"\n")):
            named = names(raw)
            if not raw.strip() or not (named or timeless or asked.since_us):
                continue
            line = raw.decode("utf-8", "replace").rstrip()
            time_us = time_of(line)
            if time_us is None:
                timeless += [line] if named else []
                if len(timeless) < _MOST_TIMELESS:
                    continue
            elif time_us < asked.since_us:
                return
            else:
                latest = time_us
            yield from (logged(source.author, each, latest) for each in timeless)
            timeless.clear()
            if time_us is not None and named:
                yield logged(source.author, line, time_us)
    if latest >= asked.since_us:
        yield from (logged(source.author, each, latest) for each in timeless)


def _pieces(log: Path, end: int | None, since_us: int) -> Sequence[_Piece]:
    """What was written last before `since_us` is left out: a segment is named by when that was."""
    found = [_Piece(log, size(log) if end is None else end)]
    for path in reversed(segments(log)):
        if _named_time(path) < since_us:
            break
        found.append(_Piece(path, size(path)))
    return found


def _blocks(pieces: Sequence[_Piece]) -> Iterator[bytes]:
    """Whole lines, from the last to the first."""
    for path, end in pieces:
        try:
            with path.open("rb") as file:
                yield from _blocks_of(file.fileno(), end)
        except OSError:  # thrown away meanwhile
            continue


def _blocks_of(file: int, end: int) -> Iterator[bytes]:
    rest = b""  # of a line whose beginning lies before it
    while end:
        start = max(0, end - BLOCK)
        data = os.pread(file, end - start, start) + rest
        # Of a line that goes on before that for very long nobody sees the beginning here.
        whole = data.find(b"\n", 0, BLOCK) + 1 if start else 0
        rest, end = data[:whole], start
        yield data[whole:]


def _first_time(block: bytes) -> int:
    """Of the first line that tells its own."""
    for raw in block.splitlines()[:100]:
        if (time_us := time_of(raw.decode("utf-8", "replace"))) is not None:
            return time_us
    return micros(datetime.max.replace(tzinfo=UTC))


def _named_time(segment: Path) -> int:
    stamp = segment.name.rpartition(".log.")[2].removesuffix("Z")
    try:
        return micros(datetime.strptime(f"{stamp}+0000", "%Y%m%dT%H%M%S.%f%z"))
    except ValueError:
        return 0


def _written_at(log: Path) -> int:
    """When the newest was written of what there is."""
    for path in (log, *reversed(segments(log))):
        try:
            return int(path.stat().st_mtime * 1_000_000)
        except OSError:
            continue
    return 0
