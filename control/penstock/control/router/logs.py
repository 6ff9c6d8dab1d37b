"""What a program's process writes: lines of JSON, as all processes do, and so much a minute."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic
from typing import Final

OUTPUT_A_MINUTE: Final = 1 << 20  # bytes of its log
SAYS: Final = "router: error: "
"""Before its last words, where it cannot go on."""

_STDERR: Final = 2
_LONGEST_LINE: Final = 64 << 10  # characters that are printed without an end of a line
_DROPPED: Final = "more output than a log takes: dropped for a minute"


def begin() -> None:
    """From now on what is logged and what is printed are such lines; neither ever fails."""
    logging.raiseExceptions = False
    output = _Bounded()
    handler = logging.StreamHandler(output)
    handler.addFilter(lambda record: output.has_capacity())
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    sys.stdout, sys.stderr = _Printed(logging.INFO, output), _Printed(logging.WARNING, output)


def tell_end(reason: str) -> None:
    """The last line of a process that cannot go on; its node agent shows it."""
    with suppress(OSError):
        os.write(_STDERR, f"{SAYS}{reason}\n".encode("utf-8", "replace"))


def level_word(level: int) -> str:
    """As all processes say it: "debug", "info", "warning" or "error"."""
    words = ((logging.ERROR, "error"), (logging.WARNING, "warning"), (logging.INFO, "info"))
    return next((word for least, word in words if level >= least), "debug")


class LineFormatter(logging.Formatter):
    """A line as the gateway's are: the time in UTC to the millisecond, levels in small letters."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as an object."""
        told: dict[str, object] = {
            "time": _written(record.created),
            "level": level_word(record.levelno),
            "logger": record.name,
            "message": record.getMessage(),
            "process": "program",
        }
        if request := getattr(record, "request_id", ""):
            told["request_id"] = request
        if record.exc_info:
            told["exc_info"] = self.formatException(record.exc_info)
        return json.dumps(told)


class _Printed(io.TextIOBase):
    """What is printed, logged line by line."""

    def __init__(self, level: int, output: _Bounded) -> None:
        self._level = level
        self._output = output
        self._begun = ""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return _STDERR

    def write(self, text: str) -> int:
        if not self._output.has_capacity():  # a gigabyte is dropped before the loop stands still
            self._begun = ""
            return len(text)
        *lines, self._begun = (self._begun + text).split("\n")
        if len(self._begun) > _LONGEST_LINE:
            lines, self._begun = [*lines, self._begun], ""
        for line in lines:
            if line.strip():
                logging.getLogger("program").log(self._level, "%s", line)
        return len(text)


class _Bounded(io.TextIOBase):
    """Writes to stderr, so much a minute, and drops the rest."""

    def __init__(self) -> None:
        self._left = OUTPUT_A_MINUTE
        self._until = 0.0

    def has_capacity(self) -> bool:
        """Whether anything is written now: what is not needs no words."""
        if monotonic() > self._until:
            self._left, self._until = OUTPUT_A_MINUTE, monotonic() + 60
        return self._left > 0

    def write(self, text: str) -> int:
        if self.has_capacity():
            piece = text[: self._left].encode("utf-8", "replace")
            self._left -= len(piece)
            with suppress(OSError):  # a full disk, or a log at its limit
                os.write(_STDERR, piece if self._left > 0 else piece + _dropped())
        return len(text)


def _dropped() -> bytes:
    told = {"time": _written(datetime.now(UTC).timestamp()), "level": "warning"}
    return f"\n{json.dumps(told | {'message': _DROPPED, 'process': 'program'})}\n".encode()


def _written(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")
