"""Converse's answers as chat completions. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from penstock.replica.providers import errors
from penstock.replica.providers.account import Account, count
from penstock.replica.providers.chunks import DONE, Shape, usage_of
from penstock.replica.providers.converse_blocks import Block, thought_of
from penstock.replica.providers.requests import wants_usage
from penstock.replica.providers.values import Ask, Piece, ProviderFailed
from penstock.replica.values import Usage

_REASONS: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}
_MALFORMED: Final = ("malformed_model_output", "malformed_tool_use")


class ConverseStream:
    """One stream of Converse's events, as chunks."""

    def __init__(self, ask: Ask, account: Account) -> None:
        self._account = account
        self._wants_usage = wants_usage(ask.body)
        self._shape = Shape(ask, self._wants_usage)
        self._usage: dict[str, Any] | None = None
        self._tools: dict[int, int] = {}  # index of the call, by that of its block
        self._without_input: set[int] = set()  # blocks of calls
        self._thoughts: dict[int, Block] = {}  # by block
        self._ended = False
        self._malformed = ""  # the stop reason of a message that cannot be used
        self._unsent = 0

    def take(self, event: dict[str, Any]) -> Iterator[Piece]:
        """The chunks for one event. Raises `ProviderFailed`."""
        ((kind, told),) = event.items()
        index = told.get("contentBlockIndex", 0)
        if kind == "messageStart":
            yield self._piece({"role": "assistant", "content": ""})
        elif kind == "contentBlockStart":
            yield from self._start(index, told["start"])
        elif kind == "contentBlockDelta":
            yield from self._delta(index, told["delta"])
        elif kind == "contentBlockStop":
            yield from self._stop(index)
        elif kind == "messageStop":
            yield from self._message_stops(told["stopReason"])
        elif kind == "metadata" and "usage" in told:
            self._usage, self._unsent = _tell(told["usage"], self._account)

    def end(self) -> Iterator[Piece]:
        """The stream is over. Raises `ProviderFailed` where the message is not, or is malformed:
        its usage has come all the same."""
        if self._malformed:
            raise _malformed(self._malformed)
        if not self._ended:
            raise errors.cut_short()
        if self._wants_usage:
            usage = self._usage or usage_of(self._account.usage())
            yield Piece(self._shape.usage_chunk(usage))
        yield Piece(DONE, tokens=self._unsent)

    def _message_stops(self, told: str) -> Iterator[Piece]:
        if told in _MALFORMED:
            self._malformed = told
            return
        reason = finish_reason(told)
        self._account.finish_reasons[0] = reason
        self._ended = True
        yield Piece(self._shape.chunk(0, {}, reason))

    def _start(self, index: int, start: dict[str, Any]) -> Iterator[Piece]:
        use = start.get("toolUse")
        if use is None or use.get("type") == "server_tool_use":
            return
        number = self._tools[index] = len(self._tools)
        self._without_input.add(index)
        function = {"name": use["name"], "arguments": ""}
        call = {"index": number, "id": use["toolUseId"], "type": "function", "function": function}
        yield self._piece({"tool_calls": [call]}, len(use["name"]))

    def _delta(self, index: int, delta: dict[str, Any]) -> Iterator[Piece]:
        if text := delta.get("text"):
            yield self._piece({"content": text}, len(text.encode(errors="replace")))
        elif "toolUse" in delta and index in self._tools:
            if text := delta["toolUse"]["input"]:
                self._without_input.discard(index)
                yield self._arguments(index, text)
        elif "reasoningContent" in delta:
            yield from self._thought(index, delta["reasoningContent"])

    def _thought(self, index: int, thought: dict[str, Any]) -> Iterator[Piece]:
        if "redactedContent" in thought:
            self._thoughts[index] = {"redactedContent": thought["redactedContent"]}
            return
        said = self._thoughts.setdefault(index, {"reasoningText": {"text": "", "signature": ""}})
        if signature := thought.get("signature"):
            said["reasoningText"]["signature"] += signature
        if text := thought.get("text"):
            said["reasoningText"]["text"] += text
            yield self._piece({"reasoning_content": text}, len(text.encode(errors="replace")))

    def _stop(self, index: int) -> Iterator[Piece]:
        if index in self._without_input:
            # A call without input has an object without fields, which is what clients parse.
            self._without_input.discard(index)
            yield self._arguments(index, "{}")
        if thought := thought_of(self._thoughts.pop(index, {})):
            yield self._piece({"thinking_blocks": [thought]})

    def _arguments(self, index: int, text: str) -> Piece:
        call = {"index": self._tools[index], "function": {"arguments": text}}
        return self._piece({"tool_calls": [call]}, len(text))

    def _piece(self, delta: dict[str, Any], size: int = 0) -> Piece:
        tokens = self._account.made(size) if size else 0
        return Piece(self._shape.chunk(0, delta), tokens=tokens)


def whole(ask: Ask, account: Account, reply: dict[str, Any]) -> Piece:
    """A unary answer of Converse. Raises `ProviderFailed`."""
    usage, _ = _tell(reply["usage"], account)
    reason = finish_reason(reply["stopReason"])
    account.finish_reasons[0] = reason
    message = _message(reply["output"]["message"]["content"])
    body = Shape(ask, include_usage=False).whole([(message, reason)], usage)
    return Piece(body, tokens=account.usage().completion_tokens)


def finish_reason(reason: str) -> str:
    """OpenAI's word for a stop reason. Raises `ProviderFailed` for those that are no end."""
    if reason in _MALFORMED:
        raise _malformed(reason)
    return _REASONS.get(reason, "stop")


def _malformed(reason: str) -> ProviderFailed:
    return errors.upstream(
        502, f"The model's answer is malformed ({reason}).", "upstream_malformed", again=True
    )


def _message(blocks: list[Block]) -> dict[str, Any]:
    texts = [block["text"] for block in blocks if "text" in block]
    uses = [block["toolUse"] for block in blocks if "toolUse" in block]
    calls = [_call(use) for use in uses if use.get("type") != "server_tool_use"]
    thoughts = [
        thought
        for block in blocks
        if (thought := thought_of(block.get("reasoningContent", {}))) is not None
    ]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(texts) if texts or not calls else None,
        "refusal": None,
    }
    if calls:
        message["tool_calls"] = calls
    if thoughts:
        message["thinking_blocks"] = thoughts
        message["reasoning_content"] = "".join(one.get("thinking", "") for one in thoughts)
    return message


def _call(use: dict[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(use.get("input") or {}, ensure_ascii=False)
    function = {"name": use["name"], "arguments": arguments}
    return {"id": use["toolUseId"], "type": "function", "function": function}


def _tell(usage: dict[str, Any], account: Account) -> tuple[dict[str, Any], int]:
    """Tells the account; returns the usage for the client and the tokens not seen before. What
    Bedrock calls input are the tokens that no cache had to do with."""
    read = count(usage.get("cacheReadInputTokens"))
    written = count(usage.get("cacheWriteInputTokens"))
    long = min(written, sum(_written_1h(usage.get("cacheDetails"))))
    prompt = count(usage.get("inputTokens")) + read + written
    completion = count(usage.get("outputTokens"))
    unseen = account.tell(prompt, completion, read, written - long, long) if prompt else 0
    told = usage_of(Usage(prompt, completion, read))
    told["prompt_tokens_details"]["cache_write_tokens"] = written
    return told, unseen


def _written_1h(details: object) -> Iterator[int]:
    for one in details if isinstance(details, list) else ():
        if one.get("ttl") == "1h":
            yield count(one.get("inputTokens"))
