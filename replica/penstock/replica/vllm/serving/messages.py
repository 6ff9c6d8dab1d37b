"""What vLLM's /v1/messages lacks: requests that name no model, documents of text, calls demanded of
no tools, errors told as what they are, names as Anthropic's, and calls that were cut short.

Imports vLLM: only after `environment.prepare`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Final

from pydantic import model_validator
from starlette.requests import Request
from starlette.responses import Response
from vllm.entrypoints.anthropic import api_router
from vllm.entrypoints.anthropic.protocol import (
    AnthropicCountTokensRequest,
    AnthropicMessagesRequest,
)
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionResponse

from penstock.replica.vllm.failures import errors
from penstock.replica.vllm.guards.controls import not_served
from penstock.replica.vllm.serving.routes import put_first
from penstock.replica.vllm.serving.tap import CallTap

_UNNAMED: Final = "unnamed"
"""Stands for the model that a request does not name; the call does, in `models.py`."""

_CALL: Final = ("chatcmpl-tool-", "toolu_")
_ANSWER: Final = ("chatcmpl-", "msg_")
_ID: Final = '"id":"'
"""How names of calls and answers begin in vLLM's chats, and at Anthropic; and where they stand."""


def _readable(data: Any) -> Any:
    """The fields as vLLM reads them. Raises ValueError for a tool that would have to be run here,
    and for a document that is no text."""
    if not isinstance(data, dict):
        return data
    for place, tool in enumerate(_objects(data.get("tools"))):
        if (kind := tool.get("type")) not in (None, "custom"):
            raise ValueError(f"tools.{place}.type: {not_served(str(kind))}")
    told = {"model": data.get("model") or _UNNAMED}
    if isinstance(data.get("messages"), list):
        told["messages"] = [_with_texts(message) for message in data["messages"]]
    return data | told


def _with_texts(holder: Any) -> Any:
    """A message, or the result of a tool, with the text of each document in its place."""
    if not isinstance(holder, dict) or not isinstance(holder.get("content"), list):
        return holder
    return holder | {"content": [_with_texts(_text_of(block)) for block in holder["content"]]}


def _text_of(block: Any) -> Any:
    if not isinstance(block, dict) or block.get("type") != "document":
        return block
    source = block.get("source")
    source = source if isinstance(source, dict) else {}
    places = {"text": "data", "content": "content"}
    if (kind := source.get("type")) not in places:
        raise ValueError(f"documents of type {kind!r} are not served; send their text instead")
    content = source.get(places[kind])
    parts = [{"text": content}] if isinstance(content, str) else _objects(content)
    heading = [str(block[name]) for name in ("title", "context") if block.get(name)]
    text = "".join(str(part.get("text") or "") for part in parts)
    return {"type": "text", "text": "\n".join([*heading, text])}


def _objects(items: Any) -> list[dict[str, Any]]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


class MessagesRequest(AnthropicMessagesRequest):  # type: ignore[misc]
    """vLLM's, with `model` optional, and documents of text."""

    _read = model_validator(mode="before")(_readable)

    @model_validator(mode="after")
    def _has_what_it_demands(self) -> MessagesRequest:
        """vLLM answers in words where a call is demanded of no tools."""
        choice = self.tool_choice
        demands = choice is not None and choice.type in ("any", "tool")
        if demands and not self.tools and not _adds_tools(self.messages):
            raise ValueError(
                f'tool_choice demands a call ("{choice.type}") and tools is empty; '
                "send the tools, or leave tool_choice out."
            )
        return self


def _adds_tools(messages: list[Any]) -> bool:
    """Whether a conversation brings tools beside those of the request."""
    contents = [one.content for one in messages if not isinstance(one.content, str)]
    return any(block.type == "tool_addition" for content in contents for block in content)


class CountTokensRequest(AnthropicCountTokensRequest):  # type: ignore[misc]
    """vLLM's, with `model` optional, and documents of text."""

    _read = model_validator(mode="before")(_readable)


async def _create(request: MessagesRequest, raw_request: Request) -> Response:
    response: Response = await api_router.create_messages(request, raw_request)
    return response


async def _count(request: CountTokensRequest, raw_request: Request) -> Response:
    response: Response = await api_router.count_tokens(request, raw_request)
    return response


def let_model_be_missing(router: Any) -> None:
    """Puts routes before those of vLLM's router that take requests without a model."""
    put_first(router, "/v1/messages", _create)
    put_first(router, "/v1/messages/count_tokens", _count)


def ends(serving: Any, messages: Sequence[Any]) -> list[int]:
    """How many messages of a chat vLLM has made once it has read the first, the second, ..."""
    made: list[Any] = []
    counts = []
    for message in messages:
        merge = serving._merge_inline_system
        serving._convert_messages([message], made, merge_inline_system=merge)
        counts.append(len(made))
    return counts


def mended(answer: Any, tap: CallTap) -> Any:
    """The chat answer that a message is made of, with names as Anthropic's begin."""
    if isinstance(answer, ChatCompletionResponse):
        return _named(with_readable_calls(answer))
    return _told(answer, tap) if isinstance(answer, AsyncGenerator) else answer


def with_readable_calls(answer: ChatCompletionResponse) -> ChatCompletionResponse:
    """The answer with such calls of tools alone whose arguments can be told as an object.

    One that the token limit cut short has none, as at Anthropic: its `stop_reason` says not to run
    it. Any other end would have the client run it, so what it says is told as text.
    """
    for choice in answer.choices:
        message, kept = choice.message, []
        for call in message.tool_calls:
            function = call.function
            if not _is_object(function.arguments):
                if function.arguments.strip() and choice.finish_reason != "length":
                    message.content = (message.content or "") + function.arguments
                    continue
                function.arguments = "{}"
            kept.append(call)
        if message.tool_calls and not kept:
            choice.finish_reason = "stop"
        message.tool_calls = kept
    return answer


def _named(answer: ChatCompletionResponse) -> ChatCompletionResponse:
    answer.id = answer.id.replace(*_ANSWER)
    for call in (call for choice in answer.choices for call in choice.message.tool_calls):
        call.id = call.id.replace(*_CALL)
    return answer


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


async def _told(chunks: AsyncGenerator[str, None], tap: CallTap) -> AsyncGenerator[str, None]:
    """Names answer and calls, and keeps an error in a chat stream for the call: vLLM would take it
    for a chunk that it cannot read, and tell the client of that."""
    async with aclosing(chunks):
        async for chunk in chunks:
            if chunk.startswith(_ERROR) and tap.lost is None:
                tap.lost = tap.refused or errors.unexplained(500)
            # Quotes in what the model says are escaped: these can only be the chunk's own.
            yield chunk.replace(_ID + _CALL[0], _ID + _CALL[1]).replace(
                _ID + _ANSWER[0], _ID + _ANSWER[1]
            )


_ERROR: Final = errors.STREAM_ERROR.decode()
