"""A configured text as the answer, for the last rung of a ladder: never busy, and for nothing.

Tokens are words. Settings: `text`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator
from importlib.metadata import version
from typing import Any, Final

from penstock.replica.providers import errors
from penstock.replica.providers.account import Account
from penstock.replica.providers.chunks import DONE, Shape, usage_of
from penstock.replica.providers.requests import (
    CHAT,
    COMPLETIONS,
    completion_limit,
    wants_usage,
    wrong_type,
)
from penstock.replica.providers.settings import Arguments
from penstock.replica.providers.values import Ask, Piece, Place
from penstock.replica.values import CannotLoad

_WORD: Final = re.compile(r"\s*\S+")
_MOST_CHOICES: Final = 128


def read_text(arguments: Arguments) -> str:
    """The setting `text`. Raises `CannotLoad`."""
    text = arguments.text("text")
    if not text.strip():
        raise CannotLoad("the canned engine needs the setting text: what it is to answer")
    return text


class Canned:
    """Answers each chat and completion with the same text."""

    name = "canned"
    version = version("penstock")
    endpoints = (CHAT, COMPLETIONS)
    place: Place | None = None

    def __init__(self, text: str) -> None:
        self._words = _WORD.findall(text)

    async def answer(self, ask: Ask, account: Account) -> AsyncGenerator[Piece, None]:
        """The text, as far as the request's limit goes."""
        prompt = sum(len(_WORD.findall(text)) for text in _texts(ask))
        _, limit = completion_limit(ask.call, ask.body)
        words = self._words[: limit or None]
        reason = "length" if len(words) < len(self._words) else "stop"
        choices = _choices(ask.body)
        account.finish_reasons = dict.fromkeys(range(choices), reason)
        account.tell(prompt, len(words) * choices)
        shape = Shape(ask, wants_usage(ask.body))
        if not ask.stream:
            text = "".join(words)
            content = _message(text) if ask.call.path == CHAT else text
            usage = usage_of(account.usage())
            body = shape.whole([(content, reason)] * choices, usage)
            yield Piece(body, tokens=len(words) * choices)
            return
        for choice in range(choices):
            for piece in _streamed(shape, ask.call.path == CHAT, choice, words, reason):
                yield piece
        if wants_usage(ask.body):
            yield Piece(shape.usage_chunk(usage_of(account.usage())))
        yield Piece(DONE)

    async def close(self) -> None:
        """There is nothing to let go of."""


def _streamed(
    shape: Shape, chat: bool, choice: int, words: list[str], reason: str
) -> Iterator[Piece]:
    if chat:
        yield Piece(shape.chunk(choice, {"role": "assistant", "content": ""}))
    for word in words:
        yield Piece(shape.chunk(choice, {"content": word} if chat else word), tokens=1)
    yield Piece(shape.chunk(choice, {} if chat else "", reason))


def _message(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text, "refusal": None}


def _choices(body: dict[str, Any]) -> int:
    choices = body.get("n")
    if choices is None:
        return 1
    if isinstance(choices, bool) or not isinstance(choices, int):
        raise wrong_type("n", "an integer", choices)
    if not 1 <= choices <= _MOST_CHOICES:
        raise errors.refused(f"'n' must be between 1 and {_MOST_CHOICES}, not {choices}.", "n")
    return choices


def _prompt_field(ask: Ask) -> str:
    return "messages" if ask.call.path == CHAT else "prompt"


def _texts(ask: Ask) -> Iterator[str]:
    """The texts of the prompt. Raises `ProviderFailed` where it has none or is malformed."""
    field = _prompt_field(ask)
    value = ask.body.get(field)
    if field == "prompt" and isinstance(value, str):
        yield value
    elif not isinstance(value, list) or not value:
        raise wrong_type(field, "a list that is not empty", value)
    elif field == "prompt":
        yield " ".join(str(part) for part in value)
    else:
        for index, message in enumerate(value):
            yield from _message_texts(message, f"messages[{index}]")


def _message_texts(message: object, where: str) -> Iterator[str]:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise wrong_type(where, "an object with a role", message)
    content = message.get("content")
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        yield from (part["text"] for part in content if _has_text(part))
    elif content is not None or "tool_calls" not in message:
        raise wrong_type(f"{where}.content", "a string or a list of parts", content)


def _has_text(part: object) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str)
