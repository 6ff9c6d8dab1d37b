"""A provider's answer in OpenAI's shapes, as our client gets it. Pure.

Ids and fields that nobody here knows stay. The model is named as the client named it; usage goes to
the account, and to the client if it asked. An end that is none is a failure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, Protocol

from penstock.replica.providers import errors
from penstock.replica.providers.account import Account
from penstock.replica.providers.chunks import DONE, encoded, event
from penstock.replica.providers.openai_errors import Clean, in_stream
from penstock.replica.providers.requests import CHAT, COMPLETIONS, RESPONSES, wants_usage
from penstock.replica.providers.values import Ask, Piece

_INCOMPLETE: Final = {"max_output_tokens": "length", "content_filter": "content_filter"}


class Reader(Protocol):
    """Reads one stream."""

    def take(self, name: str, data: str) -> Iterator[Piece]:
        """What the client gets for one event. Raises `ProviderFailed`."""
        ...

    def end(self) -> Iterator[Piece]:
        """What it gets at the stream's end. Raises `ProviderFailed` where that is none."""
        ...


def reader(ask: Ask, account: Account, clean: Clean) -> Reader:
    """The reader of this call's stream."""
    kind = ResponseEvents if ask.call.path == RESPONSES else Chunks
    return kind(ask, account, clean)


class Chunks:
    """A stream of chat or completion chunks."""

    def __init__(self, ask: Ask, account: Account, clean: Clean) -> None:
        self._model = ask.call.model
        self._account = account
        self._clean = clean
        self._wants_usage = wants_usage(ask.body)
        self._choices = _choices(ask)
        self._seen: set[int] = set()
        self._last: dict[str, Any] = {}
        self._usage: dict[str, Any] | None = None
        self._usage_sent = False
        self._unsent = 0  # tokens that the provider told of, and no piece has carried yet
        self._done = False

    def take(self, name: str, data: str) -> Iterator[Piece]:
        """See `Reader`."""
        if self._done:
            return
        if data.strip() == "[DONE]":
            yield from self._finish()
            return
        chunk = _object(data)
        if chunk.get("error") or name == "error":
            raise in_stream(chunk, self._clean)
        chunk["model"] = self._model
        self._last = chunk
        tokens = self._look_at(chunk.get("choices"))
        if isinstance(chunk.get("usage"), dict):
            usage = chunk["usage"]
            self._usage = usage
            self._unsent += _tell(self._account, usage)
            if not chunk.get("choices"):
                if self._wants_usage:
                    self._usage_sent = True
                    yield Piece(event(chunk), tokens=self._take_unsent())
                return
            chunk["usage"] = None
        if "usage" in chunk and not self._wants_usage:
            del chunk["usage"]
        yield Piece(event(chunk), tokens=tokens)

    def end(self) -> Iterator[Piece]:
        """See `Reader`. A provider that forgets its [DONE] is forgiven, if all else came: nothing
        else tells of choices that never began."""
        if not self._done:
            if len(self._account.finish_reasons) < self._choices:
                raise errors.cut_short("The provider's answer ended before all of its choices.")
            yield from self._finish()

    def _finish(self) -> Iterator[Piece]:
        if not self._seen or self._seen - set(self._account.finish_reasons):
            raise errors.cut_short("The provider's answer ended without a finish reason.")
        self._done = True
        if self._wants_usage and not self._usage_sent and self._usage is not None:
            chunk = {**self._last, "choices": [], "usage": self._usage}
            yield Piece(event(chunk), tokens=self._take_unsent())
        yield Piece(DONE, tokens=self._take_unsent())

    def _look_at(self, choices: object) -> int:
        tokens = 0
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, dict):
                continue
            index = choice.get("index") or 0
            self._seen.add(index)
            if reason := choice.get("finish_reason"):
                self._account.finish_reasons[index] = str(reason)
            if size := _size(choice):
                tokens += self._account.made(size)
        return tokens

    def _take_unsent(self) -> int:
        unsent, self._unsent = self._unsent, 0
        return unsent


class ResponseEvents:
    """A stream of typed events, as the responses endpoint has it."""

    def __init__(self, ask: Ask, account: Account, clean: Clean) -> None:
        self._model = ask.call.model
        self._account = account
        self._clean = clean
        self._ended = False

    def take(self, name: str, data: str) -> Iterator[Piece]:
        """See `Reader`."""
        if self._ended or data.strip() == "[DONE]":
            return
        message = _object(data)
        kind = str(message.get("type") or name)
        response = message.get("response")
        if kind == "error":
            raise in_stream(message, self._clean)
        if kind == "response.failed":
            raise in_stream(response, self._clean)
        if isinstance(response, dict):
            response["model"] = self._model
        delta = message.get("delta")
        tokens = self._account.made(_length(delta)) if isinstance(delta, str) else 0
        if kind in ("response.completed", "response.incomplete"):
            self._ended = True
            tokens += _look_at_response(response, self._account)
        yield Piece(b"event: " + kind.encode() + b"\n" + event(message), tokens=tokens)

    def end(self) -> Iterator[Piece]:
        """See `Reader`."""
        if not self._ended:
            raise errors.cut_short()
        yield from ()


def whole(ask: Ask, account: Account, body: bytes, clean: Clean) -> Piece:
    """A unary answer. Raises `ProviderFailed`."""
    try:
        answer = _object(body.decode())
    except UnicodeDecodeError:
        raise errors.cut_short("The provider sent what is no JSON.") from None
    if answer.get("error"):
        raise in_stream(answer, clean)
    answer["model"] = ask.call.model
    if ask.call.path == RESPONSES:
        if answer.get("status") not in ("completed", "incomplete"):
            raise errors.cut_short("The provider's answer is not complete.")
        tokens = _look_at_response(answer, account)
    else:
        tokens = 0
        choices = answer.get("choices") or ()
        for index, choice in enumerate(choices):
            account.finish_reasons[index] = str(choice.get("finish_reason") or "stop")
            tokens += account.made(_size(choice))
        if isinstance(answer.get("usage"), dict):
            tokens += _tell(account, answer["usage"])
        if ask.call.path in (CHAT, COMPLETIONS) and not choices:
            raise errors.cut_short("The provider's answer has no choices.")
    return Piece(encoded(answer), tokens=tokens)


def _choices(ask: Ask) -> int:
    """How many choices a request asks for: as many for each of its prompts."""
    asked, prompts = ask.body.get("n"), ask.body.get("prompt")
    for_each = asked if isinstance(asked, int) else 1
    if isinstance(prompts, list) and any(isinstance(one, str | list) for one in prompts):
        return for_each * len(prompts)
    return for_each


def _object(data: str) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise errors.cut_short("The provider sent what is no JSON.") from None
    if not isinstance(value, dict):
        raise errors.cut_short("The provider sent JSON that is no object.")
    return value


def _look_at_response(response: object, account: Account) -> int:
    if not isinstance(response, dict):
        return 0
    reason = "stop"
    if response.get("status") == "incomplete":
        details = response.get("incomplete_details") or {}
        reason = _INCOMPLETE.get(str(details.get("reason")), "length")
    account.finish_reasons[0] = reason
    usage = response.get("usage")
    return _tell(account, usage) if isinstance(usage, dict) else 0


def _tell(account: Account, usage: dict[str, Any]) -> int:
    """Tells the account what the provider charges, in the words of either endpoint."""
    prompt = _count(usage, "prompt_tokens") or _count(usage, "input_tokens")
    completion = _count(usage, "completion_tokens") or _count(usage, "output_tokens")
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    cached = _count(details, "cached_tokens") if isinstance(details, dict) else 0
    return account.tell(prompt, completion, cached)


def _count(values: dict[str, Any], field: str) -> int:
    value = values.get(field)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _size(choice: dict[str, Any]) -> int:
    """Bytes of all that a choice says."""
    said = choice.get("delta") or choice.get("message") or choice
    if not isinstance(said, dict):
        return 0
    texts = [said.get(field) for field in ("content", "text", "refusal", "reasoning_content")]
    if not texts[-1]:
        texts.append(said.get("reasoning"))
    for call in said.get("tool_calls") or ():
        if isinstance(call, dict) and isinstance(call.get("function"), dict):
            texts += [call["function"].get("name"), call["function"].get("arguments")]
    return sum(_length(text) for text in texts if isinstance(text, str))


def _length(text: str) -> int:
    """Bytes in UTF-8, about; half a surrogate pair has none of its own."""
    return len(text) if text.isascii() else 3 * len(text)


__all__ = ["Chunks", "Reader", "ResponseEvents", "reader", "whole"]
