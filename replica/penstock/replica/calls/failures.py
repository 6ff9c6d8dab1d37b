"""Failures that a call meets at any engine. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from penstock.replica.values import Call, Failed

_OF_CLIENT: Final = "invalid_request_error"


def unknown_adapter(call: Call) -> Failed:
    """The call's adapter is not loaded here; providers have none of ours."""
    message = f"The model `{call.model}` does not exist: adapter {call.adapter} is not loaded here."
    return Failed(404, _OF_CLIENT, "model_not_found", message, "model", fault="client")


def unsupported_endpoint(call: Call, served: Iterable[str]) -> Failed:
    """The model cannot do this; a replica of the deployment with another model may."""
    told = f"The model `{call.model}` does not serve {call.path}; it serves {', '.join(served)}."
    code = "unsupported_endpoint"
    return Failed(400, _OF_CLIENT, code, told, "model", fault="client", retryable=True)


def too_late(deadline_ms: int) -> Failed:
    """The call's own deadline passed."""
    message = f"The answer was not complete within its deadline of {deadline_ms} ms."
    return Failed(504, "timeout_error", "deadline_exceeded", message)
