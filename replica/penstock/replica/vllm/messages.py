"""What vLLM's /v1/messages lacks: requests that name no model, calls demanded of no tools, errors
told as what they are, and calls of tools that were cut short.

Touch points: the two functions and request models of vLLM's Anthropic router; that it answers a
message by a chat request, and reads the arguments of the answer's calls as JSON objects; that it
makes the chat's messages of one message after the other (`_convert_messages`); that the first of an
app's routes for a path is the one that counts.
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

from penstock.replica.vllm import errors
from penstock.replica.vllm.tap import CallTap

_UNNAMED: Final = "unnamed"
"""Stands for the model that a request does not name; the call does, in `models.py`."""


def _named(data: Any) -> Any:
    if isinstance(data, dict) and not data.get("model"):
        return data | {"model": _UNNAMED}
    return data


class MessagesRequest(AnthropicMessagesRequest):  # type: ignore[misc]
    """vLLM's, with `model` optional."""

    _default_model = model_validator(mode="before")(_named)

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
    """vLLM's, with `model` optional."""

    _default_model = model_validator(mode="before")(_named)


async def _create(request: MessagesRequest, raw_request: Request) -> Response:
    response: Response = await api_router.create_messages(request, raw_request)
    return response


async def _count(request: CountTokensRequest, raw_request: Request) -> Response:
    response: Response = await api_router.count_tokens(request, raw_request)
    return response


def let_model_be_missing(router: Any) -> None:
    """Puts routes before those of vLLM's router that take requests without a model."""
    for path, answer in (("/v1/messages", _create), ("/v1/messages/count_tokens", _count)):
        if any(getattr(route, "path", "") == path for route in router.routes):
            router.add_api_route(path, answer, methods=["POST"], response_model=None)
            router.routes.insert(0, router.routes.pop())


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
    """The chat answer that a message is made of."""
    if isinstance(answer, ChatCompletionResponse):
        return with_readable_calls(answer)
    return _without_errors(answer, tap) if isinstance(answer, AsyncGenerator) else answer


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


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


async def _without_errors(
    chunks: AsyncGenerator[str, None], tap: CallTap
) -> AsyncGenerator[str, None]:
    """Keeps an error in a chat stream for the call: vLLM would take it for a chunk that it cannot
    read, and tell the client of that."""
    async with aclosing(chunks):
        async for chunk in chunks:
            if chunk.startswith(_ERROR) and tap.lost is None:
                tap.lost = tap.refused or errors.unexplained(500)
            yield chunk


_ERROR: Final = errors.STREAM_ERROR.decode()

__all__ = [
    "CountTokensRequest",
    "MessagesRequest",
    "ends",
    "let_model_be_missing",
    "mended",
    "with_readable_calls",
]
