"""Where each request of a long recording goes: files that end at a size, the oldest dropped. Pure:
callers open, append and delete as `added` says, so that no more than `Bounds` allow is ever kept.

Each file is a recording of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from penstock.evals.comparison.recording import Header, Recorded, header_line, request_line

FIRST: Final = 1


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is kept: together `files * file_bytes` at most."""

    file_bytes: int = 64 << 20
    files: int = 16


@dataclass(frozen=True, slots=True)
class Current:
    """The file that is written to."""

    number: int
    size: int  # bytes
    began: datetime


@dataclass(frozen=True, slots=True)
class Append:
    """What is to be done: these bytes go to the end of that file, and those files go."""

    number: int
    data: bytes
    drop: tuple[int, ...] = ()


def added(
    current: Current | None,
    request: Recorded,
    arrived: datetime,
    redacted: tuple[str, ...],
    bounds: Bounds,
) -> tuple[Current | None, Append | None]:
    """The file after one more request, and what is to be done for it: nothing, where the request
    alone is larger than a file. Its `at` is set here. Raises `BadRecording`."""
    if current is not None:
        line = _line(request, arrived, current.began)
        if current.size + len(line) <= bounds.file_bytes:
            after = replace(current, size=current.size + len(line))
            return after, Append(current.number, line)
    data = header_line(Header(arrived, redacted)) + _line(request, arrived, arrived)
    if len(data) > bounds.file_bytes:
        return current, None
    number = FIRST if current is None else current.number + 1
    oldest = number - bounds.files
    dropped = (oldest,) if oldest >= FIRST else ()
    return Current(number, len(data), arrived), Append(number, data, dropped)


def _line(request: Recorded, arrived: datetime, began: datetime) -> bytes:
    at = round((arrived - began).total_seconds(), 6)
    return request_line(replace(request, at=at))
