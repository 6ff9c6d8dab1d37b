"""What is read of every request before it goes to a provider, whichever that is. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from penstock.replica.engine import Call
from penstock.replica.providers import errors
from penstock.replica.providers.values import ProviderFailed

CHAT: Final = "/v1/chat/completions"
COMPLETIONS: Final = "/v1/completions"
EMBEDDINGS: Final = "/v1/embeddings"
RESPONSES: Final = "/v1/responses"

_LIMITS: Final[Mapping[str, tuple[str, ...]]] = {
    CHAT: ("max_completion_tokens", "max_tokens"),
    COMPLETIONS: ("max_tokens",),
    RESPONSES: ("max_output_tokens",),
}
"""The fields by which a request limits its answer; of several that are set the first counts."""


def read_body(call: Call) -> dict[str, Any]:
    """The body as a JSON object. Raises `ProviderFailed`."""
    try:
        body = json.loads(call.body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise errors.refused(f"The body is not valid JSON: {error}", code="invalid_json") from None
    if not isinstance(body, dict):
        raise errors.refused("The body must be a JSON object.", code="invalid_json")
    stream = body.get("stream")
    if stream is not None and not isinstance(stream, bool):
        raise wrong_type("stream", "a boolean", stream)
    return body


def completion_limit(call: Call, body: dict[str, Any]) -> tuple[str, int]:
    """The field that limits the answer, and how many tokens it allows: what the request asks for,
    else what the gateway allows, else 0. Raises `ProviderFailed` for one that asks for more."""
    fields = _LIMITS.get(call.path, ())
    for field in fields:
        asked = body.get(field)
        if asked is None:
            continue
        if isinstance(asked, bool) or not isinstance(asked, int):
            raise wrong_type(field, "an integer", asked)
        if asked < 1:
            raise errors.refused(f"{field!r} must be at least 1, not {asked}.", field)
        if call.max_completion_tokens and asked > call.max_completion_tokens:
            raise errors.too_many_tokens(field, asked, call.max_completion_tokens)
        return field, asked
    return (fields[-1] if fields else ""), call.max_completion_tokens


def check_tools(body: dict[str, Any], tools: bool) -> None:
    """Raises `ProviderFailed` where the request brings tools and the model takes none."""
    if not tools and body.get("tools"):
        raise errors.refused(
            "The model of this deployment takes no tools; leave tools out.",
            "tools",
            "unsupported_parameter",
        )


def wants_usage(body: dict[str, Any]) -> bool:
    """Whether a stream is to end with a usage chunk."""
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def wrong_type(field: str, wanted: str, value: object) -> ProviderFailed:
    """A field that holds something else than it has to."""
    shown = json.dumps(value, ensure_ascii=False, default=str)
    shown = shown if len(shown) <= 60 else shown[:60] + "..."
    return errors.refused(f"{field!r} must be {wanted}, not {shown}.", field, "invalid_type")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


__all__ = [
    "CHAT",
    "COMPLETIONS",
    "EMBEDDINGS",
    "RESPONSES",
    "check_tools",
    "completion_limit",
    "read_body",
    "wants_usage",
    "wrong_type",
]
