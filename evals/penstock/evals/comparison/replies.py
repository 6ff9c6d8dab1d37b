"""Replies of a chat endpoint, put together: a stream's chunks with their times, or an error. Pure:
callers read the socket and the clock."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.evals.comparison.pair import Answer, Call, Choice, Mark
from penstock.evals.comparison.text import whole

HOPELESS: Final = (401, 403, 404)
"""What is answered to every request of a run alike: no key, or no such model."""
BACKEND_HEADER: Final = "x-penstock-backend"
BACKEND_VERSION_HEADER: Final = "x-penstock-backend-version"
VERSION_HEADER: Final = "x-penstock-adapter-version"
MARKS: Final = {"x-penstock-degraded": Mark.DEGRADED, "x-penstock-trimmed": Mark.TRIMMED}


def error_of(text: str) -> str:
    """The words of an error's body."""
    try:
        error = json.loads(text)["error"]
        return f"{error.get('code') or error.get('type')}: {error['message']}"[:300]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return whole(text)[:200]


@dataclass(slots=True)
class _Growing:
    text: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    calls: dict[int, list[str]] = field(default_factory=dict)  # name and arguments, by index
    finish_reason: str = ""

    def add(self, choice: Mapping[str, Any]) -> bool:
        delta = choice.get("delta") or {}
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        self.text.append(delta.get("content") or "")
        self.refusal.append(delta.get("refusal") or "")
        for call in delta.get("tool_calls") or ():
            grown = self.calls.setdefault(call.get("index", 0), ["", ""])
            function = call.get("function") or {}
            grown[0] += function.get("name") or ""
            grown[1] += function.get("arguments") or ""
        return bool(self.text[-1] or self.refusal[-1] or delta.get("tool_calls"))

    def choice(self) -> Choice:
        calls = tuple(Call(name, arguments) for _, (name, arguments) in sorted(self.calls.items()))
        return Choice(
            whole("".join(self.text)), self.finish_reason, calls, whole("".join(self.refusal))
        )


class Lines:
    """Bytes as they come, line by line. Lines end at \\n alone: JSON may hold Unicode's other ends
    of lines."""

    def __init__(self) -> None:
        self._rest = b""

    def of(self, data: bytes) -> list[str]:
        """The lines that these bytes end."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line.decode(errors="replace") for line in lines]


class StreamedReply:
    """A streamed reply while it is read: `feed` takes bytes as they come, with the seconds since
    the request was sent; `answer` is what they came to."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = {name.lower(): value for name, value in headers.items()}
        self._choices: dict[int, _Growing] = {}
        self._usage: Mapping[str, Any] = {}
        self._error = ""
        self._done = False
        self._lines = Lines()
        self._first: float | None = None
        self._last: float | None = None

    @property
    def marks(self) -> frozenset[Mark]:
        """What the head says of how it was answered."""
        return frozenset(mark for name, mark in MARKS.items() if name in self._headers)

    def feed(self, data: bytes, at: float) -> None:
        """The next bytes."""
        for line in self._lines.of(data):
            self._line(line, at)

    def _line(self, line: str, at: float) -> None:
        if line.startswith(": x-penstock-"):  # what a head that went out early could not say
            name, _, value = line.removeprefix(": ").partition(":")
            self._headers[name] = value.strip()
        if not line.startswith("data:") or self._error:
            return
        data = line.removeprefix("data:").strip()
        if data == "[DONE]":
            self._done = True
            return
        try:
            self._chunk(json.loads(data), at)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            self._error = f"200, but no chunk of a chat completion: {whole(data)[:200]!r}"

    def _chunk(self, told: Mapping[str, Any], at: float) -> None:
        if told.get("error"):
            self._error = f"broken stream: {error_of(json.dumps(told))}"
            return
        self._usage = told.get("usage") or self._usage
        for choice in told["choices"]:
            if self._choices.setdefault(choice.get("index", 0), _Growing()).add(choice):
                self._first = at if self._first is None else self._first
                self._last = at

    def answer(self, at: float) -> Answer:
        """The answer, ended after so many seconds."""
        error = self._error
        if not error and not (self._done and self._choices):
            error = "broken stream: it ended without [DONE]"
        return Answer(
            choices=tuple(grown.choice() for _, grown in sorted(self._choices.items())),
            error=error,
            prompt_tokens=_count(self._usage, "prompt_tokens"),
            completion_tokens=_count(self._usage, "completion_tokens"),
            ttft=self._first,
            tpot=self._tpot(),
            total=at,
            model=" ".join(
                filter(None, map(self._headers.get, (BACKEND_HEADER, BACKEND_VERSION_HEADER)))
            ),
            adapter=self._headers.get(VERSION_HEADER, ""),
        )

    def _tpot(self) -> float | None:
        tokens = _count(self._usage, "completion_tokens") or 0
        if self._first is None or self._last is None or tokens < 2:
            return None
        return (self._last - self._first) / (tokens - 1)


def _count(told: Mapping[str, Any], name: str) -> int | None:
    value = told.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
