"""A client's request as an OpenAI-compatible provider gets it. Pure.

What the client wrote is passed on, but for the model's name and for what is between the client and
Penstock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.replica.providers import errors
from penstock.replica.providers.requests import (
    CHAT,
    COMPLETIONS,
    EMBEDDINGS,
    RESPONSES,
    completion_limit,
    without_limits,
)
from penstock.replica.providers.values import Ask

PATHS: Final[Mapping[str, str]] = {
    CHAT: "/chat/completions",
    COMPLETIONS: "/completions",
    EMBEDDINGS: "/embeddings",
    RESPONSES: "/responses",
}
"""What each endpoint is called below the provider's base URL."""

_OURS: Final = (
    "priority",
    "cache_salt",
    "penstock",
    "request_id",
    "kv_transfer_params",
    "ec_transfer_params",
    "vllm_xargs",
    "session_id",
    "stream_interval",
    "routed_experts_prompt_start",
    "mm_processor_kwargs",
    "media_io_kwargs",
)
"""Fields by which a client would steer an engine, or that are marks for Penstock."""

_KEPT_STATE: Final = ("background", "previous_response_id", "conversation")
"""Fields of a response that go with answers which a server keeps."""


def outgoing(ask: Ask, model: str, newest_limits: bool) -> dict[str, Any]:
    """The body that the provider gets. `newest_limits`: it knows max_completion_tokens. Raises
    `ProviderFailed`."""
    path = ask.call.path
    bare = without_limits(ask.call, ask.body)
    body = {key: value for key, value in bare.items() if key not in _OURS}
    for field in ("messages", "input"):
        if isinstance(body.get(field), list):
            body[field] = [_unmarked(item) for item in body[field]]
    body["model"] = model
    field, limit = completion_limit(ask.call, ask.body)
    if limit and path == CHAT and ask.body.get(field) is None:
        field = "max_completion_tokens" if newest_limits else "max_tokens"
    if limit:
        body[field] = limit
    if path in (CHAT, COMPLETIONS) and ask.stream:
        options = body.get("stream_options")
        body["stream_options"] = {
            **(options if isinstance(options, dict) else {}),
            "include_usage": True,
        }
    if path == RESPONSES:
        _keep_nothing(body)
    return body


def _keep_nothing(body: dict[str, Any]) -> None:
    for field in _KEPT_STATE:
        if body.get(field):
            raise errors.refused(
                f"Answers are not kept; leave {field} out, and send the whole conversation.",
                field,
                "unsupported_parameter",
            )
    body["store"] = False


def _unmarked(item: object) -> object:
    if isinstance(item, dict) and "penstock" in item:
        return {key: value for key, value in item.items() if key != "penstock"}
    return item


__all__ = ["PATHS", "outgoing"]
