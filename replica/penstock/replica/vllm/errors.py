"""vLLM's error answers in the terms of the OpenAI API.

vLLM puts the HTTP status into `code` and names of its own into `type`. Its message is kept, it says
what was wrong; type, code and param are put as the OpenAI API has them, so that clients may switch
on them. Pure: bytes in, values out.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any, Final

from penstock.replica.endings import first_cause
from penstock.replica.engine import Call, Failed

_TOO_LONG: Final = re.compile(
    r"maximum (context|model) length|context length|longer than the maximum|max_model_len", re.I
)
_MISSING: Final = re.compile(r"'type': 'missing'")
_NOT_JSON: Final = re.compile(r"'type': 'json_invalid'")
_FIELD: Final = re.compile(r" \(parameter=.*\)$", re.S)
_BUSY_RETRY_MS: Final = 1000

STREAM_ERROR: Final = b'data: {"error":'
"""How an event begins by which vLLM tells of an error after its 200."""


def from_answer(status: int, body: bytes, path: str) -> Failed:
    """An error answer of vLLM's, by its HTTP status and body, to a request for `path`."""
    error = _error_object(body)
    told = str(error.get("message") or "the engine gave no reason")
    message = _readable(told)
    param = str(error.get("param") or "").removeprefix("body.")
    if status >= 500:
        return _server_error(status, message)
    if status == 404 and param == "model":
        return client_error(404, "model_not_found", message, "model")
    if _TOO_LONG.search(message):
        field = "messages" if "chat" in path else "prompt"
        return client_error(400, "context_length_exceeded", message, field)
    return client_error(status, _client_code(status, told), message, _clean_param(param))


def from_event(event: bytes, path: str) -> Failed:
    """The same, of an event that begins with `STREAM_ERROR`."""
    body = event.removeprefix(b"data: ").strip()
    code = _error_object(body).get("code")
    return from_answer(code if isinstance(code, int) and 400 <= code < 600 else 500, body, path)


def client_error(status: int, code: str, message: str, param: str = "") -> Failed:
    """An error that the request itself causes: the same anywhere, so never worth a retry."""
    return Failed(status, "invalid_request_error", code, message, param, fault="client")


def unknown_adapter(call: Call) -> Failed:
    """The call's adapter is not loaded here."""
    message = f"The model `{call.model}` does not exist: adapter {call.adapter} is not loaded here."
    return client_error(404, "model_not_found", message, "model")


def engine_dead(reason: str, *, aboard: bool) -> Failed:
    """The engine died. A call that was aboard may be what killed it, and is not tried elsewhere."""
    message = f"The engine of this replica died: {reason}."
    return Failed(503, "server_error", "engine_dead", message, retryable=not aboard)


def cut_short() -> Failed:
    """The answer ended before the engine had finished it, which must never look like an end."""
    message = "The engine stopped before the answer was complete."
    return Failed(503, "server_error", "engine_stopped", message, retryable=True)


def engine_error() -> Failed:
    """The engine gave this one request up; what it was may not be so elsewhere."""
    message = "The engine could not finish this answer for an error of its own."
    return Failed(500, "server_error", "engine_error", message, retryable=True)


def nothing_allowed() -> Failed:
    """The engine gave the request up since its grammar, as it is, has no answer."""
    message = (
        "The structured output that was asked for allows no further token: its grammar or schema "
        "has no finite answer, or other fields of the request forbid it."
    )
    return client_error(400, "invalid_value", message, "response_format")


def oom_contained() -> Failed:
    """There was not enough memory for this one request; the replica goes on."""
    message = "This replica had not enough memory for the request; another may have."
    return Failed(
        503, "server_error", "oom_contained", message, retryable=True, retry_after_ms=_BUSY_RETRY_MS
    )


def internal(error: BaseException) -> Failed:
    """Something broke that no handler knew."""
    cause = first_cause(error)
    if isinstance(cause, MemoryError):
        return oom_contained()
    return Failed(500, "server_error", "internal_error", f"{type(cause).__name__}: {cause}")


def not_generated(error: BaseException, *, begun: bool) -> Failed:
    """An exception inside vLLM's `generate`, whose reason vLLM keeps from its answer.

    Before the first output it comes of reading the request, and a wrong value there is the
    client's: say, half a surrogate pair among the bad words.
    """
    if isinstance(error, ValueError | TypeError | OverflowError) and not begun:
        return client_error(400, "invalid_value", str(error))
    return internal(error)


def too_late(deadline_ms: int) -> Failed:
    """The call's own deadline passed."""
    message = f"The answer was not complete within its deadline of {deadline_ms} ms."
    return Failed(504, "timeout_error", "deadline_exceeded", message)


def _server_error(status: int, message: str) -> Failed:
    if status == 501:
        return client_error(400, "unsupported_parameter", message)
    if status == 503:
        return _overloaded(message)
    return Failed(status, "server_error", "internal_error", message)


def _overloaded(message: str) -> Failed:
    return Failed(
        503,
        "server_error",
        "overloaded",
        message,
        retryable=True,
        retry_after_ms=_BUSY_RETRY_MS,
    )


def _client_code(status: int, message: str) -> str:
    if status in (404, 405):
        return "not_found" if status == 404 else "method_not_allowed"
    if _NOT_JSON.search(message):
        return "invalid_json"
    return "missing_required_parameter" if _MISSING.search(message) else "invalid_value"


def _readable(message: str) -> str:
    """vLLM's message; of its list of pydantic errors, which are Python dicts, what they say."""
    first, *lines = message.splitlines() or [""]
    if "validation error" not in first:
        return _FIELD.sub("", message)
    return "; ".join(_finding(line.strip()) for line in lines) or message


def _finding(line: str) -> str:
    try:
        error = ast.literal_eval(line)
        field = _clean_param(str(error["loc"]).removeprefix("body.")) or "body"
        more = error.get("ctx", {}).get("error", "")
        return f"{field}: {error['msg']}" + (f": {more}" if more else "")
    except (ValueError, SyntaxError, TypeError, KeyError):
        return line


def _clean_param(param: str) -> str:
    """The field's path; a position in the text of the body ("body.17") names no field."""
    return "" if param.isdigit() or param == "body" else param


def _error_object(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except ValueError:
        return {}
    error = parsed.get("error") if isinstance(parsed, dict) else None
    return error if isinstance(error, dict) else {}


__all__ = [
    "STREAM_ERROR",
    "client_error",
    "cut_short",
    "engine_dead",
    "engine_error",
    "from_answer",
    "from_event",
    "internal",
    "not_generated",
    "nothing_allowed",
    "oom_contained",
    "too_late",
    "unknown_adapter",
]
