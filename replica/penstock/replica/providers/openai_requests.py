"""A client's request as an OpenAI-compatible provider gets it. Pure.

What is on the endpoint's list is passed on as the client wrote it; nothing is kept there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.replica.providers import fields
from penstock.replica.providers.openai_contents import checked
from penstock.replica.providers.requests import (
    CHAT,
    COMPLETIONS,
    EMBEDDINGS,
    RESPONSES,
    completion_limit,
    without_limits,
)
from penstock.replica.providers.settings import Allowed
from penstock.replica.providers.values import Ask

PATHS: Final[Mapping[str, str]] = {
    CHAT: "/chat/completions",
    COMPLETIONS: "/completions",
    EMBEDDINGS: "/embeddings",
    RESPONSES: "/responses",
}
"""What each endpoint is called below the provider's base URL."""

_SAMPLING: Final = ("temperature", "top_p", "seed", "stop", "n", "logprobs", "logit_bias")
_PENALTIES: Final = ("frequency_penalty", "presence_penalty")
_TOOLS: Final = ("tools", "tool_choice", "parallel_tool_calls")
_ALL: Final = ("stream", "user", "service_tier")

_PASSED: Final[Mapping[str, frozenset[str]]] = {
    CHAT: frozenset(
        {
            *(*_ALL, *_SAMPLING, *_PENALTIES, *_TOOLS, "messages", "top_logprobs", "functions"),
            *("function_call", "response_format", "reasoning_effort", "web_search_options"),
        }
    ),
    COMPLETIONS: frozenset({*_ALL, *_SAMPLING, *_PENALTIES, "prompt", "echo", "suffix"}),
    EMBEDDINGS: frozenset({"input", "encoding_format", "dimensions", "user"}),
    RESPONSES: frozenset(
        {
            *(*_ALL, *_TOOLS, "input", "instructions", "temperature", "top_p", "top_logprobs"),
            *("text", "reasoning", "include", "truncation", "max_tool_calls", "metadata"),
            "prompt",
        }
    ),
}
_OPENAIS: Final = frozenset({"prompt_cache_key", "safety_identifier", "verbosity"})
_OTHERS: Final = frozenset({"top_k", "min_p", "repetition_penalty"})
"""What OpenAI itself takes, and what those do that speak its API."""


def outgoing(ask: Ask, model: str, allowed: Allowed, *, openai: bool) -> dict[str, Any]:
    """The body that the provider gets. `openai`: it is OpenAI itself. Raises `ProviderFailed`."""
    path = ask.call.path
    more = _OPENAIS if openai else _OTHERS
    known = _PASSED[path] | (more if path != EMBEDDINGS else frozenset())
    body = fields.passed(without_limits(ask.call, ask.body), known, allowed.features)
    body = checked(path, body, allowed.features)
    if choices := allowed.choices(body):
        body["n"] = choices
    allowed.check_tier(body.get("service_tier"))
    body["model"] = model
    field, limit = completion_limit(ask.call, ask.body)
    if limit and path == CHAT and ask.body.get(field) is None:
        field = "max_completion_tokens" if openai else "max_tokens"
    if limit:
        body[field] = limit
    if path in (CHAT, COMPLETIONS) and ask.stream:
        body["stream_options"] = {"include_usage": True}
    if path == RESPONSES or (path == CHAT and (openai or "store" in allowed.features)):
        body["store"] = ask.body.get("store") is True and "store" in allowed.features
    return body
