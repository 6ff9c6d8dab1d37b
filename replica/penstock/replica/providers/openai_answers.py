"""A provider's answer in OpenAI's shapes, as our client gets it. Pure.

Fields that nobody here knows stay. The model is named as the client named it, an answer has one id;
usage goes to the account, and to the client if it asked, its numbers bounded. Choices are whole and
end in OpenAI's words. An end that is none is a failure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, Protocol

from penstock.replica.providers import errors
from penstock.replica.providers.account import Account, count
from penstock.replica.providers.chunks import DONE, encoded, event, usage_of
from penstock.replica.providers.openai_errors import Clean, in_stream
from penstock.replica.providers.requests import (
    CHAT,
    COMPLETIONS,
    EMBEDDINGS,
    RESPONSES,
    wants_usage,
)
from penstock.replica.providers.sizes import choices_of
from penstock.replica.providers.values import Ask, Piece, ProviderFailed

_EVENT: Final = re.compile(r"[a-z0-9_.]{1,64}")
_MOST_CALLS: Final = 1024
_REASONS: Final = {
    **{word: word for word in ("stop", "length", "tool_calls", "content_filter", "function_call")},
    **dict.fromkeys(("max_tokens", "max_output_tokens", "model_length"), "length"),
    **dict.fromkeys(("tool_use", "tool_call"), "tool_calls"),
    **dict.fromkeys(("safety", "recitation", "content_filtered", "refusal"), "content_filter"),
}
"""Words of providers for why they end; any other is an end of the model's own."""
_NO_ENDS: Final = {"error", "abort", "aborted", "cancelled", "insufficient_system_resource"}
_INCOMPLETE: Final = {"max_output_tokens": "length", "content_filter": "content_filter"}


class Reader(Protocol):
    """Reads one stream."""

    @property
    def over(self) -> bool:
        """Whether its last event has come."""

    def take(self, name: str, data: str) -> Iterator[Piece]:
        """What the client gets for one event. Raises `ProviderFailed`."""

    def end(self) -> Iterator[Piece]:
        """What it gets at the stream's end. Raises `ProviderFailed` where that is none."""


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
        self._choices = choices_of(ask)
        self._ask = ask
        self._base: dict[str, Any] = {}  # what all chunks of an answer have in common
        self._seen: set[int] = set()
        self._last: dict[str, Any] = {}
        self._usage: dict[str, Any] | None = None
        self._usage_sent = False
        self._unsent = 0  # tokens that the provider told of, and no piece has carried yet
        self._done = False

    @property
    def over(self) -> bool:
        """See `Reader`."""
        return self._done

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
        choices = chunk["choices"] = _choices(chunk, self._choices, "delta", self._ask)
        self._last = chunk = self._as_one(chunk)
        tokens = self._look_at(choices)
        if isinstance(chunk.get("usage"), dict):
            self._unsent += _tell(self._account, chunk["usage"])
            self._usage = chunk["usage"] = _bounded(chunk["usage"], self._account)
            if not choices:
                if self._wants_usage:
                    self._usage_sent = True
                    yield Piece(event(chunk), tokens=self._take_unsent())
                return
            chunk["usage"] = None
        if not choices:
            return
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

    def _as_one(self, chunk: dict[str, Any]) -> dict[str, Any]:
        """The chunk with the id, time and kind of the first that had some."""
        if chunk["choices"] and not self._base:
            self._base = _base(chunk, self._ask)
        return {**chunk, **self._base, "model": self._model}

    def _look_at(self, choices: list[dict[str, Any]]) -> int:
        tokens = 0
        for choice in choices:
            index = choice["index"]
            self._seen.add(index)
            if reason := choice["finish_reason"]:
                self._account.finish_reasons[index] = reason
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

    @property
    def over(self) -> bool:
        """See `Reader`."""
        return self._ended

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
        if not _EVENT.fullmatch(kind):
            raise errors.cut_short("The provider's stream has an event without a name.")
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
        tokens = _look_at_whole(answer, ask, account)
    return Piece(encoded(answer), tokens=tokens)


def not_streamed(body: bytes, clean: Clean) -> ProviderFailed:
    """What was answered to who asked for a stream: an error, mostly."""
    answer = _object(body.decode(errors="replace"))
    if answer.get("error"):
        return in_stream(answer, clean)
    return errors.cut_short("The provider answered with no stream.")


def _look_at_whole(answer: dict[str, Any], ask: Ask, account: Account) -> int:
    tokens = 0
    if ask.call.path in (CHAT, COMPLETIONS):
        choices = answer["choices"] = _choices(answer, choices_of(ask), "message", ask)
        answer |= _base(answer, ask)
        if not choices:
            raise errors.cut_short("The provider's answer has no choices.")
        if len({choice["index"] for choice in choices}) < len(choices):
            raise errors.cut_short("The provider's answer has a choice twice.")
        for choice in choices:
            if not choice.get("message", True):
                raise errors.cut_short("The provider's answer has no message.")
            if not choice["finish_reason"]:
                raise errors.cut_short("The provider's answer ended without a finish reason.")
            account.finish_reasons[choice["index"]] = choice["finish_reason"]
            tokens += account.made(_size(choice))
    if ask.call.path == EMBEDDINGS:
        _check_embeddings(answer.get("data"))
    if isinstance(answer.get("usage"), dict):
        tokens += _tell(account, answer["usage"])
        answer["usage"] = _bounded(answer["usage"], account)
    return tokens


def _check_embeddings(data: object) -> None:
    """Lists of numbers, or texts of base64. Raises `ProviderFailed`."""
    listed = data if isinstance(data, list) else []
    given = [one.get("embedding") if isinstance(one, dict) else None for one in listed]
    if not given or not all(isinstance(one, list | str) for one in given):
        raise errors.cut_short("The provider's answer has no embeddings.")


def _base(answer: dict[str, Any], ask: Ask) -> dict[str, Any]:
    """Id, kind and time of an answer; ours, where the provider has none."""
    chat, given, created = ask.call.path == CHAT, answer.get("id"), answer.get("created")
    kind = "chat.completion.chunk" if ask.stream else "chat.completion"
    return {
        "id": given if isinstance(given, str) and given else f"chatcmpl-{ask.call.request_id}",
        "object": kind if chat else "text_completion",
        "created": created if isinstance(created, int) and created > 0 else ask.created,
    }


def _choices(answer: dict[str, Any], most: int, said: str, ask: Ask) -> list[dict[str, Any]]:
    """The choices of an answer, with all that a client reads of each. Raises `ProviderFailed`."""
    choices = answer.get("choices") or []
    if not isinstance(choices, list) or not all(isinstance(one, dict) for one in choices):
        raise errors.cut_short("The provider's answer has choices that are none.")
    for at, choice in enumerate(choices):
        index = choice["index"] = at if choice.get("index") is None else choice["index"]
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < max(1, most):
            raise errors.cut_short("The provider's answer has a choice that nobody asked for.")
        if ask.call.path == CHAT:
            choice[said] = choice.get(said) or {}
            _check_said(choice[said])
        elif not isinstance(choice.setdefault("text", ""), str):
            raise errors.cut_short("The provider's answer has a text that is none.")
        choice["finish_reason"] = _reason(choice.get("finish_reason"))
    return choices


def _check_said(said: object) -> None:
    calls = said.get("tool_calls") if isinstance(said, dict) else None
    if not isinstance(said, dict) or not isinstance(said.get("content"), str | list | None):
        raise errors.cut_short("The provider's answer has a message that is none.")
    if not isinstance(calls or [], list) or not all(isinstance(call, dict) for call in calls or ()):
        raise errors.cut_short("The provider's answer has calls that are none.")
    for call in calls or ():
        if "index" in call and (call["index"] is True or call["index"] not in range(_MOST_CALLS)):
            raise errors.cut_short("The provider's answer has a call without a place.")
        _check_function(call.get("function"))


def _check_function(function: object) -> None:
    """Arguments are a text of JSON; some send the object itself."""
    if isinstance(function, dict):
        given = function.get("arguments")
        if isinstance(given, dict):
            given = function["arguments"] = json.dumps(given)
        if isinstance(given, str | None) and isinstance(function.get("name"), str | None):
            return
    if function is not None:
        raise errors.cut_short("The provider's answer has a call of what is no function.")


def _reason(told: object) -> str | None:
    """OpenAI's word for why a choice ended. Raises `ProviderFailed` for what is no end."""
    if not told:
        return None
    reason = str(told).lower()
    if reason in _NO_ENDS:
        raise errors.cut_short(f"The provider's answer broke off ({reason}).")
    return _REASONS.get(reason, "stop")


def _bounded(usage: dict[str, Any], account: Account) -> dict[str, Any]:
    """Usage as the client gets it: what can be no count is what the account has in its place."""
    told, own = _counts(usage), usage_of(account.usage())
    del own["prompt_tokens_details"]  # where the provider tells none there are none
    return told | {key: value for key, value in own.items() if told.get(key) is None}


def _counts(values: dict[str, Any]) -> dict[str, Any]:
    """The counts among these values, also of what is in them; null is what nobody counted."""
    nested = {key: _counts(value) for key, value in values.items() if isinstance(value, dict)}
    told = {k: count(v) or v for k, v in values.items() if v in (None, 0) or count(v)}
    return told | nested


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
    if not isinstance(usage, dict):
        return 0
    response["usage"] = _counts(usage)
    return _tell(account, usage)


def _tell(account: Account, usage: dict[str, Any]) -> int:
    """Tells the account what the provider charges, in the words of either endpoint."""
    prompt = _count(usage, "prompt_tokens") or _count(usage, "input_tokens")
    completion = _count(usage, "completion_tokens") or _count(usage, "output_tokens")
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    details = details if isinstance(details, dict) else {}
    cached, written = _count(details, "cached_tokens"), _count(details, "cache_write_tokens")
    return account.tell(prompt, completion, cached, written) if prompt else 0


def _count(values: dict[str, Any], field: str) -> int:
    return count(values.get(field))


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
