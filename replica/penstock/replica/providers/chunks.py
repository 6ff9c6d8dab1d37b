"""Answers in OpenAI's shapes, for providers that have shapes of their own. Pure."""

from __future__ import annotations

import json
from typing import Any, Final

from penstock.replica.providers.characters import whole_characters
from penstock.replica.providers.requests import CHAT
from penstock.replica.providers.values import Ask
from penstock.replica.values import Usage

DONE: Final = b"data: [DONE]\n\n"


def encoded(value: object) -> bytes:
    """As JSON bytes. Raises `ValueError` for a number that JSON has not."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return whole_characters(text).encode()


def event(value: object) -> bytes:
    """One server-sent event."""
    return b"data: " + encoded(value) + b"\n\n"


def usage_of(usage: Usage) -> dict[str, Any]:
    """Usage as OpenAI tells it."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


class Shape:
    """The shape of one answer: its id, its model as the client wrote it, its endpoint.

    `include_usage`: the stream ends with a usage chunk, and the others say that they have none.
    """

    def __init__(self, ask: Ask, include_usage: bool) -> None:
        self._chat = ask.call.path == CHAT
        kind = "chatcmpl" if self._chat else "cmpl"
        unary = "chat.completion" if self._chat else "text_completion"
        streamed = "chat.completion.chunk" if self._chat else "text_completion"
        self._base = {
            "id": f"{kind}-{ask.call.request_id}",
            "object": streamed if ask.stream else unary,
            "created": ask.created,
            "model": ask.call.model,
        }
        self._include_usage = include_usage

    def chunk(
        self, choice: int, content: dict[str, Any] | str, finish_reason: str | None = None
    ) -> bytes:
        """One event: a chat's delta, or a completion's text."""
        what = {"delta": content} if self._chat else {"text": content}
        one = {"index": choice, **what, "logprobs": None, "finish_reason": finish_reason}
        usage = {"usage": None} if self._include_usage else {}
        return event({**self._base, "choices": [one], **usage})

    def usage_chunk(self, usage: dict[str, Any]) -> bytes:
        """The event behind all choices."""
        return event({**self._base, "choices": [], "usage": usage})

    def whole(
        self, contents: list[tuple[dict[str, Any] | str, str]], usage: dict[str, Any]
    ) -> bytes:
        """A unary body: for each choice its message or text, and its finish reason."""
        name = "message" if self._chat else "text"
        choices = [
            {"index": index, name: content, "logprobs": None, "finish_reason": reason}
            for index, (content, reason) in enumerate(contents)
        ]
        return encoded({**self._base, "choices": choices, "usage": usage})
