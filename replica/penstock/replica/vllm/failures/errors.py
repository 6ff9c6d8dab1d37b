"""The errors of a call that vLLM serves, as values.

Here are those that the replica itself knows of; `exceptions.py` has what vLLM's exceptions mean.
Pure.
"""

from __future__ import annotations

from typing import Final

from penstock.replica.endings import first_cause
from penstock.replica.values import Death, Failed

_BUSY_RETRY_MS: Final = 1000

STREAM_ERROR: Final = b'data: {"error":'
"""How an event begins by which vLLM tells of an error after its 200."""

STREAM_ERRORS: Final = (STREAM_ERROR, b"event: error\n")
"""The same, in any of the dialects."""


def client_error(status: int, code: str, message: str, param: str = "") -> Failed:
    """An error that the request itself causes: the same anywhere, so never worth a retry."""
    return Failed(status, "invalid_request_error", code, message, param, fault="client")


def cannot_resume() -> Failed:
    """What another replica began; the client asked for nothing of the kind."""
    message = "This replica cannot go on with an answer that another began."
    return Failed(503, "server_error", "resume_unsupported", message, retryable=True)


def bad_resume(reason: str) -> Failed:
    """What a client is said to have of an answer cannot be so; the client itself said nothing."""
    message = f"The answer cannot be gone on with: {reason}."
    return Failed(400, "invalid_request_error", "bad_resume", message)


def engine_dead(death: Death, *, aboard: bool) -> Failed:
    """The engine died. A call that was aboard may be what killed it, and is not tried elsewhere."""
    message = f"The engine of this replica died: {death}."
    return Failed(503, "server_error", death.code, message, retryable=not aboard)


def cut_short() -> Failed:
    """The answer ended before the engine had finished it, which must never look like an end."""
    message = "The engine stopped before the answer was complete."
    return Failed(503, "server_error", "engine_stopped", message, retryable=True)


def engine_error(status: int = 500) -> Failed:
    """The engine gave this one request up; what it was may not be so elsewhere."""
    message = "The engine could not finish this answer for an error of its own."
    return Failed(status, "server_error", "engine_error", message, retryable=True)


def unreadable() -> Failed:
    """What vLLM makes of the body broke its own code, before it looked at any field by itself."""
    message = (
        "The request cannot be read: one of its fields has a type or a shape that the API does not "
        "know; compare it with the description of the endpoint."
    )
    return client_error(400, "invalid_value", message)


def nothing_allowed(field: str) -> Failed:
    """The engine gave the request up since its grammar, as it is, has no answer. `field`: where the
    grammar comes from; empty where that is not known."""
    message = (
        "The structured output that was asked for allows no further token: its grammar or schema "
        "has no finite answer, or other fields of the request forbid it."
    )
    return client_error(400, "invalid_value", message, field)


def too_many_numbers(numbers: int, most: int) -> Failed:
    """The model makes more numbers of the request's texts than one answer may hold."""
    message = (
        f"The answer would hold at least {numbers} numbers, at most {most} are possible; send "
        "fewer or shorter texts at once, or, where the endpoint has it, use encoding_format base64."
    )
    return client_error(400, "invalid_value", message, "input")


def too_many_logprobs(logprobs: int, most: int, field: str) -> Failed:
    """The answer would hold more log probabilities than one may. `field`: what asks for them."""
    message = (
        f"{field} asks for {logprobs} log probabilities in one answer, those of each token and of "
        f"its alternatives counted, at most {most} are possible; ask for fewer alternatives, fewer "
        "choices, or fewer or shorter prompts at once."
    )
    return client_error(400, "invalid_value", message, field)


def token_budget_exceeded(message: str, field: str) -> Failed:
    """The request wants more tokens than the gateway allows."""
    return client_error(400, "token_budget_exceeded", message, field)


def oom_contained() -> Failed:
    """There was not enough memory for this one request; the replica goes on."""
    message = "This replica had not enough memory for the request; another may have."
    return Failed(
        503, "server_error", "oom_contained", message, retryable=True, retry_after_ms=_BUSY_RETRY_MS
    )


def internal(error: BaseException) -> Failed:
    """Something broke that no handler knew; what it was is for the log, not for the client."""
    if isinstance(first_cause(error), MemoryError):
        return oom_contained()
    message = "The replica could not answer for an error of its own; its log says which."
    return Failed(500, "server_error", "internal_error", message)


def unexplained(status: int) -> Failed:
    """vLLM answered with an error and said nothing by which it could be known."""
    message = f"The engine answered with status {status} and gave no reason."
    if status < 500:
        return client_error(status, "invalid_value", message)
    return Failed(status, "server_error", "internal_error", message)


def overloaded(message: str) -> Failed:
    """The engine takes no more for now; another replica may."""
    return Failed(
        503, "server_error", "overloaded", message, retryable=True, retry_after_ms=_BUSY_RETRY_MS
    )
