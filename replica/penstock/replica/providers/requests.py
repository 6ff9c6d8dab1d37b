"""What is read of every request before it goes to a provider, whichever that is. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from penstock.replica.providers import errors
from penstock.replica.providers.characters import whole_characters
from penstock.replica.providers.values import ProviderFailed
from penstock.replica.values import Call

CHAT: Final = "/v1/chat/completions"
COMPLETIONS: Final = "/v1/completions"
EMBEDDINGS: Final = "/v1/embeddings"
RESPONSES: Final = "/v1/responses"

_MOST_NUMBER: Final = 1_000_000_000

_LIMITS: Final[Mapping[str, tuple[str, ...]]] = {
    CHAT: ("max_completion_tokens", "max_tokens"),
    COMPLETIONS: ("max_tokens",),
    RESPONSES: ("max_output_tokens",),
}
"""The fields by which a request limits its answer; of several that are set the first counts, and
all have to be right."""


def read_body(call: Call) -> dict[str, Any]:
    """The body as a JSON object. Raises `ProviderFailed`."""
    try:
        body = json.loads(call.body, parse_constant=_no_number)
        if b"\\ud" in call.body or b"\\uD" in call.body:
            body = json.loads(whole_characters(json.dumps(body, ensure_ascii=False)))
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
    else what the gateway allows, else 0. Raises `ProviderFailed` for one that asks for more. An
    endpoint without such a field has neither."""
    fields = _LIMITS.get(call.path, ())
    named = [field for field in fields if body.get(field) is not None]
    for field in named:
        _check_limit(field, body[field], call.max_completion_tokens)
    if named:
        return named[0], whole_number(named[0], body[named[0]])
    return (fields[-1], call.max_completion_tokens) if fields else ("", 0)


def without_limits(call: Call, body: dict[str, Any]) -> dict[str, Any]:
    """The body without any field that limits the answer."""
    return {key: value for key, value in body.items() if key not in _LIMITS.get(call.path, ())}


def _check_limit(field: str, asked: object, most: int) -> None:
    number = whole_number(field, asked)
    if most and number > most:
        raise errors.too_many_tokens(field, number, most)


def whole_number(field: str, value: object) -> int:
    """A number from 1 on; 3.0 as well, which engines take. Raises `ProviderFailed`."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type(field, "an integer", value)
    if not 1 <= value <= _MOST_NUMBER:
        raise errors.refused(f"{field!r} must be from 1 to {_MOST_NUMBER}, not {value}.", field)
    return value


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
