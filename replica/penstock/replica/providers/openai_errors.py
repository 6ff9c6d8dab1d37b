"""What an OpenAI-compatible provider's refusals mean for our client. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from penstock.replica.providers import errors
from penstock.replica.providers.characters import whole_characters
from penstock.replica.providers.values import ProviderFailed
from penstock.replica.values import Failed

Clean = Callable[[str], str]
"""Takes secrets out of a text."""

_CLIENTS: Final = {400, 413, 415, 422}
_QUOTA: Final = "insufficient_quota"
_KEPT: Final = {_QUOTA, "rate_limit_exceeded"}
"""Codes of a fault that is not the client's, and that mean the same here. Any other might be one by
which our gateways know a fault of their own."""
_ACCESS: Final = re.compile(
    r"\b(api.?)?key\b|credential|permission|unauthori|authenticat|access|allowed|account|project|"
    r"organi[sz]ation|billing|country|region|subscription|token\b|forbidden",
    re.IGNORECASE,
)
"""What a 403 speaks of that only whoever runs the deployment can mend; other words are of the
request."""
_MOST_TEXT: Final = 2000


def refused(
    status: int, body: object, retry_after_ms: int, model: str, path: str, clean: Clean
) -> ProviderFailed:
    """An answer of status 300 and above. `body`: its error as far as it was JSON."""
    error = error_of(body)
    message, code = _text(error, "message", clean), _text(error, "code", clean)
    of_input = status == 403 and message and "code" in error and not _ACCESS.search(message + code)
    if status in _CLIENTS or of_input:
        return ProviderFailed(
            Failed(
                status,
                _text(error, "type", clean) or "invalid_request_error",
                code or "invalid_value",
                message or f"The provider refused the request with status {status}.",
                _text(error, "param", clean),
                fault="client",
            )
        )
    if status in (401, 403):
        return errors.credentials()
    if status == 404 and "model" in code + message.lower():
        return errors.model_not_found(model)
    if status == 404 and not isinstance(body, dict):
        return errors.no_endpoint(path)
    if status == 402:
        return _throttled(message, _QUOTA, 0)
    if status == 429:
        return _throttled(message, code, retry_after_ms)
    if status < 400:
        message = f"The provider redirects (status {status}): see to base_url."
        return errors.operators(message, "upstream_no_endpoint")
    told = status if status in (500, 502, 503, 504) else 502
    return errors.upstream(
        told,
        message or f"The provider failed with status {status}.",
        _kept(code, "upstream_error"),
        again=status in (408, 409) or status >= 500,
        retry_after_ms=retry_after_ms,
    )


def in_stream(error: object, clean: Clean) -> ProviderFailed:
    """An error that the provider told in its answer."""
    words = error_of(error)
    message = _text(words, "message", clean) or "The provider failed while it answered."
    code = _kept(_text(words, "code", clean), "upstream_error")
    if code == _QUOTA:
        return errors.operators(message, code)
    return errors.upstream(502, message, code)


def error_of(body: object) -> dict[str, Any]:
    """The error's fields in a body, with or without an envelope; a bare text is its message."""
    if isinstance(body, dict) and isinstance(body.get("error"), dict | str):
        body = body["error"]
    if isinstance(body, str):
        return {"message": body}
    return body if isinstance(body, dict) else {}


def _throttled(message: str, code: str, retry_after_ms: int) -> ProviderFailed:
    message = message or "The provider takes no more requests of this account for now."
    if code == _QUOTA:  # until somebody pays
        return errors.operators(message, code, 429)
    return errors.throttled(message, _kept(code, "rate_limit_exceeded"), retry_after_ms)


def _kept(code: str, otherwise: str) -> str:
    return code if code in _KEPT else otherwise


def _text(error: dict[str, Any], field: str, clean: Clean) -> str:
    value = error.get(field)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return whole_characters(clean(str(value)))[:_MOST_TEXT]
