"""Answers of any endpoint, streamed or not, as far as a replay goes by them. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.evals.comparison.replies import Lines, error_of

DONE: Final = "[DONE]"
_ENDS: Final = ("message_stop", "response.completed", "response.incomplete")
_FAILS: Final = ("error", "response.failed")
_WHOLE_LONGEST: Final = 16 << 20  # bytes of an unstreamed answer that is looked into


@dataclass(frozen=True, slots=True)
class Said:
    """What an answer says of itself."""

    streamed: bool
    error: str = ""  # the stream's own last word
    truncated: bool = False  # it ended before it said that it was whole
    finish_reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    ttft_s: float | None = None  # until the first content; of streams alone


class AnyReply:
    """A reply while it is read: OpenAI's and Anthropic's streams, or a body. It keeps no text."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._streamed = headers.get("content-type", "").startswith("text/event-stream")
        self._lines = Lines()
        self._body = bytearray()
        self._size = 0
        self._whole = False
        self._error = ""
        self._first: float | None = None
        self._finish_reason = ""
        self._usage: dict[str, int] = {}

    def feed(self, data: bytes, at: float) -> None:
        """The next bytes, with the seconds since the request was sent."""
        if not self._streamed:
            self._size += len(data)
            self._body += data[: max(0, _WHOLE_LONGEST - len(self._body))]
            return
        for line in self._lines.of(data):
            if line.startswith("data:"):
                self._event(line.removeprefix("data:").strip(), at)

    def said(self) -> Said:
        """What it came to, when no more comes."""
        if not self._streamed:
            self._read_body()
        return Said(
            streamed=self._streamed,
            error=self._error,
            truncated=not self._whole and not self._error,
            finish_reason=self._finish_reason,
            prompt_tokens=self._usage.get("prompt"),
            completion_tokens=self._usage.get("completion"),
            ttft_s=self._first,
        )

    def _read_body(self) -> None:
        if self._size > len(self._body):
            self._whole = True  # too long to look into: HTTP says that it is whole
            return
        told = _object(bytes(self._body))
        self._whole = told is not None
        if told is not None:
            self._take(told)

    def _event(self, data: str, at: float) -> None:
        if data == DONE:
            self._whole = True
            return
        told = _object(data.encode(errors="replace"))
        if told is None:
            self._error = self._error or f"an event that is no JSON object: {data[:100]!r}"
            return
        kind = told.get("type")
        if told.get("error") or kind in _FAILS:
            failed = told.get("response") if kind == "response.failed" else told
            self._error = self._error or error_of(json.dumps(failed))
        self._whole = self._whole or kind in _ENDS
        if self._first is None and _has_content(told):
            self._first = at
        self._take(told)

    def _take(self, told: Mapping[str, Any]) -> None:
        for held in (told, _mapping(told.get("message")), _mapping(told.get("response"))):
            self._count(_mapping(held.get("usage")))
            self._finish_reason = _finish_reason(held) or self._finish_reason

    def _count(self, usage: Mapping[str, Any]) -> None:
        for name, ours in (
            ("prompt_tokens", "prompt"),
            ("input_tokens", "prompt"),
            ("completion_tokens", "completion"),
            ("output_tokens", "completion"),
        ):
            count = usage.get(name)
            if isinstance(count, int) and not isinstance(count, bool):
                self._usage[ours] = count


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def _mapping(told: object) -> Mapping[str, Any]:
    return told if isinstance(told, Mapping) else {}


def _choices(told: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    choices = told.get("choices")
    return [_mapping(each) for each in choices] if isinstance(choices, list) else []


def _has_content(told: Mapping[str, Any]) -> bool:
    """Whether an event brings something of the answer itself: text, a refusal, a call."""
    kind = told.get("type")
    if isinstance(kind, str):  # Anthropic's and the Responses API's events
        return kind == "content_block_delta" or kind.endswith(".delta")
    for choice in _choices(told):
        delta = _mapping(choice.get("delta"))
        if choice.get("text") or any(
            delta.get(name) for name in ("content", "refusal", "reasoning_content", "tool_calls")
        ):
            return True
    return False


def _finish_reason(told: Mapping[str, Any]) -> str:
    """Why the answer ended, as its API says it."""
    reasons = [choice.get("finish_reason") for choice in _choices(told)]
    reasons += [told.get("stop_reason"), _mapping(told.get("delta")).get("stop_reason")]
    reasons.append(_mapping(told.get("incomplete_details")).get("reason"))
    if told.get("object") == "response" and told.get("status") == "completed":
        reasons.append("completed")
    return next((each for each in reasons if isinstance(each, str) and each), "")
