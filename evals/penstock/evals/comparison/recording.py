"""A recording: requests as clients sent them, and when they came: JSON Lines, a header first. Pure.

The header names the format, its version, the moment from which arrivals count, and what was taken
out. Each other line is a request, with what was answered where that is known. Lines need not be in
the order of arrival: who records writes a request when its answer has ended.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, BinaryIO, Final

from penstock.evals.comparison.questions import WrongLine, object_of
from penstock.evals.errors import EvalError

FORMAT: Final = "penstock-recording"
VERSION: Final = 1
LONGEST_LINE: Final = 32 << 20
"""Bytes of a line, its end included."""
MOST_REQUESTS: Final = 1_000_000
"""Requests of one recording: what a replay can keep the order of."""
LONGEST_SPAN: Final = 366 * 86400.0
"""Seconds between the header's moment and an arrival."""

_HEADER: Final = ("format", "version", "began", "redacted")
_FIELDS: Final = ("id", "at", "path", "session", "body", "answered")
_ANSWERED: Final = ("status", "finish_reason", "usage", "ttft_ms", "total_ms")
_USAGE: Final = ("prompt_tokens", "completion_tokens")
_PATH: Final = re.compile(r"/[A-Za-z0-9._~-]+(?:/[A-Za-z0-9._~:-]+){0,15}")
_NAME: Final = re.compile(r"[A-Za-z0-9._:/-]{1,128}")


class BadRecording(EvalError):
    """A recording that cannot be used: the line, the field, and what it must be."""


@dataclass(frozen=True, slots=True)
class Header:
    """What holds for all requests of a recording."""

    began: datetime  # arrivals are seconds since then; it has a time zone
    redacted: tuple[str, ...] = ()  # what was looked for and taken out, by the rules' names


@dataclass(frozen=True, slots=True)
class Answered:
    """What a request was answered when it was recorded, as far as that is known."""

    status: int = 200
    finish_reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    ttft_ms: float | None = None
    total_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request."""

    id: str
    at: float  # seconds since the header's moment; below 0: it came before
    path: str
    body: Mapping[str, Any]
    session: str = ""  # a hash; empty: a session of its own
    answered: Answered | None = None


def header_line(header: Header) -> bytes:
    """The first line of a recording."""
    told = {"format": FORMAT, "version": VERSION, "began": header.began.isoformat()}
    return _line({**told, "redacted": list(header.redacted)})


def request_line(request: Recorded) -> bytes:
    """Another line of a recording. Raises `BadRecording` for what `read` would refuse."""
    told: dict[str, Any] = {"id": request.id, "at": request.at, "path": request.path}
    if request.session:
        told["session"] = request.session
    told["body"] = request.body
    if request.answered is not None:
        told["answered"] = _answered_told(request.answered)
    try:
        line = _line(told)
        _request(line)
    except (WrongLine, ValueError, TypeError, RecursionError) as wrong:
        raise BadRecording(f"request {request.id!r} cannot be recorded: {wrong}") from wrong
    return line


@dataclass(slots=True)
class Reader:
    """Reads a recording line by line, and holds one at a time."""

    stream: BinaryIO
    header: Header = field(init=False)
    _number: int = 0

    def __post_init__(self) -> None:
        """Reads the header. Raises `BadRecording`."""
        self.header = self._read(_header, self._next() or b"")

    def requests(self) -> Iterator[tuple[int, Recorded]]:
        """Each request, as it stands there, with where its line begins. Raises `BadRecording` for
        the first line that is wrong."""
        count, offset = 0, self.stream.tell()
        while line := self._next():
            if line.strip():
                count += 1
                if count > MOST_REQUESTS:
                    raise self._wrong(f"there are more than {MOST_REQUESTS:,} requests")
                yield offset, self._read(_request, line)
            offset += len(line)

    def _next(self) -> bytes:
        self._number += 1
        line = self.stream.readline(LONGEST_LINE + 1)
        if len(line) > LONGEST_LINE:
            raise self._wrong(f"is longer than {LONGEST_LINE:,} bytes")
        return line

    def _read(self, read: Any, line: bytes) -> Any:
        try:
            return read(line)
        except WrongLine as wrong:
            raise self._wrong(str(wrong)) from wrong

    def _wrong(self, why: str) -> BadRecording:
        return BadRecording(f"line {self._number} of the recording: {why}")


def request_at(stream: BinaryIO, offset: int) -> Recorded:
    """The request whose line begins there, as `Reader` told. Raises `BadRecording`."""
    stream.seek(offset)
    try:
        return _request(stream.readline(LONGEST_LINE))
    except WrongLine as wrong:
        raise BadRecording(f"the recording changed while it was read: {wrong}") from wrong


def _line(told: Mapping[str, Any]) -> bytes:
    line = json.dumps(told, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return line.encode() + b"\n"


def _answered_told(answered: Answered) -> dict[str, Any]:
    usage = {name: getattr(answered, name) for name in _USAGE}
    told = {
        "status": answered.status,
        "finish_reason": answered.finish_reason or None,
        "usage": {name: count for name, count in usage.items() if count is not None} or None,
        "ttft_ms": answered.ttft_ms,
        "total_ms": answered.total_ms,
    }
    return {name: value for name, value in told.items() if value is not None}


def _header(line: bytes) -> Header:
    if not line.strip():
        raise WrongLine(f"must be a header, such as {_example()}")
    told = object_of(line, _HEADER)
    if told.get("format") != FORMAT:
        raise WrongLine(f"format: is {_shown(told.get('format'))}, must be {FORMAT!r}")
    if told.get("version") != VERSION or told["version"] is True:
        raise WrongLine(f"version: is {_shown(told.get('version'))}, must be {VERSION}")
    redacted = told.get("redacted", [])
    if not isinstance(redacted, list) or not all(isinstance(each, str) for each in redacted):
        raise WrongLine(f"redacted: is {_shown(redacted)}, must be a list of names")
    return Header(_moment(told.get("began")), tuple(redacted))


def _moment(told: object) -> datetime:
    try:
        began = datetime.fromisoformat(told)  # type: ignore[arg-type]
        if began.utcoffset() is not None:
            return began
    except (TypeError, ValueError):
        pass
    raise WrongLine(f"began: is {_shown(told)}, must be a time with its zone, as ISO 8601 has it")


def _request(line: bytes) -> Recorded:
    if len(line) > LONGEST_LINE:
        raise WrongLine(f"is longer than {LONGEST_LINE:,} bytes")
    told = object_of(line, _FIELDS)
    body = told.get("body")
    if not isinstance(body, dict):
        raise WrongLine(f"body: is {_shown(body)}, must be the JSON object that was sent")
    return Recorded(
        id=_text(told, "id", _NAME, "a text of letters, digits, . _ : / -, at most 128"),
        at=_number(told, "at", -LONGEST_SPAN, LONGEST_SPAN) or 0.0,
        path=_text(told, "path", _PATH, "the path of an endpoint, such as /v1/chat/completions"),
        body=body,
        session=_session(told),
        answered=_answered(told["answered"]) if "answered" in told else None,
    )


def _session(told: Mapping[str, Any]) -> str:
    if "session" not in told:
        return ""
    return _text(told, "session", _NAME, "a hash: letters, digits, . _ : / -, at most 128")


def _answered(told: object) -> Answered:
    if not isinstance(told, dict):
        raise WrongLine(f"answered: is {_shown(told)}, must be an object")
    usage = told.get("usage", {})
    for name, held, fields in (("answered", told, _ANSWERED), ("usage", usage, _USAGE)):
        if not isinstance(held, dict):
            raise WrongLine(f"{name}: is {_shown(held)}, must be an object")
        if unknown := sorted(set(held) - set(fields)):
            raise WrongLine(f"{name}: there is no field {unknown[0]!r}: {', '.join(fields)}")
    finish_reason = told.get("finish_reason", "")
    if not isinstance(finish_reason, str):
        raise WrongLine(f"finish_reason: is {_shown(finish_reason)}, must be a text")
    return Answered(
        status=_whole(told, "status", 599) or 200,
        finish_reason=finish_reason,
        prompt_tokens=_whole(usage, "prompt_tokens", 1 << 40),
        completion_tokens=_whole(usage, "completion_tokens", 1 << 40),
        ttft_ms=_number(told, "ttft_ms", 0, LONGEST_SPAN) if "ttft_ms" in told else None,
        total_ms=_number(told, "total_ms", 0, LONGEST_SPAN) if "total_ms" in told else None,
    )


def _text(told: Mapping[str, Any], name: str, form: re.Pattern[str], must: str) -> str:
    value = told.get(name)
    if not isinstance(value, str) or not form.fullmatch(value):
        raise WrongLine(f"{name}: is {_shown(value)}, must be {must}")
    return value


def _number(told: Mapping[str, Any], name: str, least: float, most: float) -> float:
    value = told.get(name)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not least <= value <= most:  # type: ignore
        raise WrongLine(f"{name}: is {_shown(value)}, must be a number, {least:g} to {most:g}")
    return float(value)  # type: ignore[arg-type]


def _whole(told: Mapping[str, Any], name: str, most: int) -> int | None:
    value = told.get(name)
    if value is None and name not in told:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise WrongLine(f"{name}: is {_shown(value)}, must be a whole number, 0 to {most}")
    return value


def _shown(value: object) -> str:
    return "missing" if value is None else repr(value)[:80]


def _example() -> str:
    return f'{{"format": "{FORMAT}", "version": {VERSION}, "began": "2026-01-31T12:00:00Z"}}'
