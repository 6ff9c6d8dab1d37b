"""What an exception of vLLM's, or of what it is built on, means to the client.

Status and param are vLLM's, type and code the OpenAI API's. All of it comes from the exception: its
class, the field it names, the errors it carries; its text is only passed on, without what is of no
use outside (paths, addresses, positions in C++ sources). What vLLM only says in words, without an
exception, is told apart by the field that comes with it.

Imports vLLM: only after `environment.prepare`.
"""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Mapping
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from jinja2 import TemplateError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from vllm.exceptions import (
    GenerationError,
    GracefulHTTPError,
    RetryableRequestError,
    VLLMNotFoundError,
    VLLMUnprocessableEntityError,
    VLLMValidationError,
)
from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

from penstock.replica.values import Death, Failed
from penstock.replica.vllm.failures import errors, validation

_CODES: Final[Mapping[str, str]] = {
    # How vLLM names a prompt's length, in tokens and in characters.
    "input_tokens": "context_length_exceeded",
    "input_text": "context_length_exceeded",
    # What vLLM, or this replica, does not do with these models.
    "use_beam_search": "unsupported_parameter",
    "prompt_embeds": "unsupported_parameter",
    "suffix": "unsupported_parameter",
    "background": "unsupported_parameter",
    "conversation": "unsupported_parameter",
    "previous_response_id": "unsupported_parameter",
    "dimensions": "unsupported_parameter",
}
"""Codes by the field that an exception names; any other field's value is an invalid one."""

_TOLD_CODES: Final[Mapping[tuple[int, str], str]] = {
    (404, "model"): "model_not_found",
    (404, "response_id"): "previous_response_not_found",
    (400, "input"): "context_length_exceeded",
    (400, "background"): "unsupported_parameter",
    (400, "logprobs"): "unsupported_parameter",
    (400, "suffix"): "unsupported_parameter",
}
"""Codes of what vLLM says without an exception, by its status and field. Of `input` it says so only
that the prompt is too long."""

_STATUS_CODES: Final[Mapping[int, str]] = {
    404: "not_found",
    405: "method_not_allowed",
    413: "request_too_large",
    415: "unsupported_media_type",
}

_ALIASES: Final[Mapping[tuple[str, str], str]] = {
    ("/v1/messages", "max_completion_tokens"): "max_tokens",
    ("/v1/responses", "max_tokens"): "max_output_tokens",
}
"""Fields under the name that an endpoint's clients know, where vLLM makes another request of it."""

_OUT_OF_RANGE: Final = "A number of the request is too large or too small for the engine."
_HALF_PAIR: Final = (
    "A text of the request holds half a surrogate pair (\\ud800 to \\udfff), which is no "
    "character; send whole characters."
)
_ITEMS: Final = "vllm.entrypoints.openai.responses.utils"
"""Where vLLM makes a chat of a response's items, and takes their first part unseen."""
_EMPTY_ITEM: Final = (
    "An item of input has nothing in it that a chat could be made of: the content of an "
    "assistant's message begins with a part of type output_text."
)
_ESCAPED_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")

_ANYBODYS: Final = (ValueError, TypeError, OverflowError, NotImplementedError, TemplateError)
"""Whose fault these are depends on when they come; pydantic's errors are of the first."""

_MOST_TEXT: Final = 600
_PLACES: Final = re.compile(
    r"\[\d\d:\d\d:\d\d\] \S+:\d+: |<[\w.]+ object at 0x[0-9a-f]+>| at 0x[0-9a-fA-F]+"
    r"|: \{'\w+': [^{}]*\}"
    r'|\n?\s*File "[^"]+", line \d+, in \S+|(?<![\w:/])(?:/[\w.\-]+){2,}'
)


def failed(
    error: BaseException,
    path: str = "",
    body: bytes = b"",
    *,
    reading: bool = False,
    begun: bool = False,
) -> Failed:
    """The error for the client of a call to `path` with this body. `reading`: vLLM still made its
    request of the body, so that whatever broke, the body broke it. `begun`: the engine has
    answered, so that only what vLLM's own classes call the client's fault is."""
    match error:
        case TypeError() | UnicodeError() if _holds_half_pair(body):
            return errors.client_error(400, "invalid_value", _HALF_PAIR)
        case _ if begun and isinstance(error, _ANYBODYS):
            return errors.engine_error()
        case RequestValidationError():
            return _invalid(validation.read(error.errors(), error.body))
        case ValidationError():
            return _invalid(validation.read(error.errors(include_url=False), _parsed(body)))
        case VLLMValidationError() | VLLMUnprocessableEntityError():
            return _wrong_value(error, path)
        case EngineGenerateError() if error.__cause__ is not None:
            return failed(error.__cause__, path, body, reading=reading, begun=begun)
        case EngineDeadError():
            return errors.engine_dead(Death("it stopped before this request"), aboard=False)
        case VLLMNotFoundError():
            return errors.client_error(404, "model_not_found", _text(error))
        case HTTPException():
            return _of_status(error.status_code, str(error.detail))
        case GracefulHTTPError():
            return _of_status(int(error.http_status), error.message)
        case RetryableRequestError():
            return errors.engine_error(503)
        case GenerationError():
            return errors.engine_error()
        case NotImplementedError():
            return errors.client_error(400, "unsupported_parameter", _text(error))
        case OverflowError():
            return errors.client_error(400, "invalid_value", _OUT_OF_RANGE)
        case ValueError() | TypeError() | TemplateError():
            return errors.client_error(400, "invalid_value", _text(error))
        case LookupError() | AttributeError() if not begun and _broke_in(_ITEMS, error):
            return errors.client_error(400, "invalid_value", _EMPTY_ITEM, "input")
        case _ if reading and isinstance(error, Exception):
            return errors.unreadable()
        case _:
            return errors.internal(error)


def told(status: int, message: str, param: str | None) -> Failed:
    """The error that vLLM put into words itself."""
    text = _readable(message)
    if (code := _TOLD_CODES.get((status, param or ""))) is not None:
        return errors.client_error(status, code, text, param or "")
    return _of_status(status, text, param or "")


def not_generated(error: BaseException, body: bytes = b"", *, begun: bool) -> Failed:
    """An exception inside vLLM's `generate`, whose reason vLLM keeps from its answer.

    Before the first output it comes of reading the request, and a wrong value there is the
    client's: say, half a surrogate pair among the bad words.
    """
    return errors.internal(error) if begun else failed(error, body=body)


def _broke_in(module: str, error: BaseException) -> bool:
    """Whether it was raised there, or in what was called from there."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(frame.f_globals.get("__name__") == module for frame in frames)


def _invalid(finding: validation.Finding) -> Failed:
    return errors.client_error(400, finding.code, _readable(finding.message), finding.param)


def _wrong_value(error: VLLMValidationError | VLLMUnprocessableEntityError, path: str) -> Failed:
    named = error.parameter or ""
    param = _ALIASES.get((path, named), named)
    text = _with_reason(_text(error), error.__cause__)
    if param != named:
        text = text.replace(named, param)
    value = validation.shown(error.value)
    if error.value is not None and str(error.value) not in text and value not in text:
        text = f"{text.rstrip('.!')}; it is {value}."
    status = 422 if isinstance(error, VLLMUnprocessableEntityError) else 400
    return errors.client_error(status, _CODES.get(named, "invalid_value"), text, param)


def _with_reason(text: str, cause: BaseException | None) -> str:
    """The text; where vLLM says only that a grammar is not valid, with its compiler's reason.

    pydantic's reasons are left out: they name classes of vLLM's.
    """
    if cause is None or isinstance(cause, ValidationError) or not text.endswith("specification."):
        return text
    reason = " ".join(_readable(str(cause)).split()).rstrip(".")
    return f"{text[:-1]}: {reason}." if reason else text


def _of_status(status: int, message: str, param: str = "") -> Failed:
    if status == 501:
        return errors.client_error(400, "unsupported_parameter", message, param)
    if status == 503:
        return errors.overloaded(message)
    if status >= 500:
        return errors.engine_error(status)
    code = _STATUS_CODES.get(status, "invalid_value")
    return errors.client_error(status, code, message, param)


def _text(error: BaseException) -> str:
    """What the exception says, without what vLLM's classes add to it."""
    said: Any = error.args[0] if error.args else ""
    return _readable(said if isinstance(said, str) else str(error)) or (
        "The engine refuses a value of the request, and does not say which."
    )


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _holds_half_pair(body: bytes) -> bool:
    """Whether a text in the body is none: JSON can write halves of characters alone."""
    if not _ESCAPED_HALF.search(body):
        return False
    try:
        json.dumps(_parsed(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _readable(message: str) -> str:
    text = _PLACES.sub("", message).strip()
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}... (cut)"
