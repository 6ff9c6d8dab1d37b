"""What vLLM's exceptions mean to a client."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from fastapi.exceptions import RequestValidationError
from jinja2 import TemplateError
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException

from penstock.replica.values import Failed

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

CHAT = "/v1/chat/completions"

Made = Exception | Callable[[], Exception]


def _vllms(name: str, *args: Any, **more: Any) -> Callable[[], Exception]:
    """One of vLLM's exceptions, made when the test runs: its import warns of other things."""
    return lambda: getattr(import_module("vllm.exceptions"), name)(*args, **more)


def _wrong(message: str, parameter: str | None = None, value: Any = None) -> Any:
    return _vllms("VLLMValidationError", message, parameter=parameter, value=value)


def _failed(error: Made, path: str = CHAT, **more: Any) -> Failed:
    from penstock.replica.vllm.failures import exceptions

    return exceptions.failed(error if isinstance(error, Exception) else error(), path, **more)


@pytest.mark.parametrize(
    ("error", "status", "code", "param", "message"),
    [
        (
            _wrong("temperature must be non-negative, got -3.0.", "temperature", -3.0),
            400,
            "invalid_value",
            "temperature",
            "temperature must be non-negative, got -3.0.",
        ),
        (
            _wrong("`top_logprobs` must be a positive value or -1.", "top_logprobs", -2),
            400,
            "invalid_value",
            "top_logprobs",
            "`top_logprobs` must be a positive value or -1; it is -2.",
        ),
        (
            _wrong("Your prompt has 9 tokens.", "input_tokens", 9),
            400,
            "context_length_exceeded",
            "input_tokens",
            "Your prompt has 9 tokens.",
        ),
        (
            _wrong("max_tokens=9 cannot be greater than max_model_len=4.", "max_tokens", 9),
            400,
            "invalid_value",
            "max_tokens",
            "max_tokens=9 cannot be greater than max_model_len=4.",
        ),
        (_wrong("No.", "prompt_embeds"), 400, "unsupported_parameter", "prompt_embeds", "No."),
        (_wrong("No.", "parameter=x"), 400, "invalid_value", "parameter=x", "No."),
        (_wrong("No."), 400, "invalid_value", "", "No."),
        (
            _vllms("VLLMUnprocessableEntityError", "No image there.", parameter="image_url"),
            422,
            "invalid_value",
            "image_url",
            "No image there.",
        ),
        (_vllms("VLLMNotFoundError", "No such."), 404, "model_not_found", "", "No such."),
        (HTTPException(404, "Not Found"), 404, "not_found", "", "Not Found"),
        (HTTPException(405, "No."), 405, "method_not_allowed", "", "No."),
        (HTTPException(415, "No."), 415, "unsupported_media_type", "", "No."),
        (NotImplementedError("No."), 400, "unsupported_parameter", "", "No."),
        (ValueError("Too deep."), 400, "invalid_value", "", "Too deep."),
        (TypeError("No."), 400, "invalid_value", "", "No."),
        (TemplateError("No user turn."), 400, "invalid_value", "", "No user turn."),
        (
            OverflowError(),
            400,
            "invalid_value",
            "",
            "A number of the request is too large or too small for the engine.",
        ),
        (
            ValueError('[05:32:05] /project/cpp/json.cc:4944: Unsupported type "nope"'),
            400,
            "invalid_value",
            "",
            'Unsupported type "nope"',
        ),
    ],
)
def test_a_wrong_request_is_told_by_its_exception(
    error: Made, status: int, code: str, param: str, message: str
) -> None:
    failed = _failed(error, CHAT)
    assert (failed.status, failed.type, failed.code) == (status, "invalid_request_error", code)
    assert (failed.param, failed.message) == (param, message)
    assert (failed.fault, failed.retryable) == ("client", False)


def test_an_error_of_validation_is_read_with_its_body() -> None:
    location = ("body", "messages", 0, "ChatCompletionUserMessageParam", "role")
    error = {"type": "missing", "loc": location, "msg": "Field required", "input": {}}
    failed = _failed(RequestValidationError([error], body={"messages": [{}]}), CHAT)
    assert (failed.code, failed.param) == ("missing_required_parameter", "messages.0.role")


@pytest.mark.parametrize(
    ("path", "named", "param"),
    [
        ("/v1/messages", "max_completion_tokens", "max_tokens"),
        ("/v1/responses", "max_tokens", "max_output_tokens"),
        (CHAT, "max_completion_tokens", "max_completion_tokens"),
    ],
)
def test_a_field_has_the_name_that_the_endpoints_clients_know(
    path: str, named: str, param: str
) -> None:
    failed = _failed(_wrong(f"{named} is 0.", named, 0), path)
    assert (failed.param, failed.message) == (param, f"{param} is 0.")


@pytest.mark.parametrize(
    ("error", "status", "code", "retryable"),
    [
        (_vllms("QueueOverflowError"), 503, "overloaded", True),
        (_vllms("GracefulHTTPError", "Full.", 503), 503, "overloaded", True),
        (_vllms("GenerationError"), 500, "engine_error", True),
        (_vllms("RetryableRequestError"), 503, "engine_error", True),
        (RuntimeError("secret of /etc/passwd"), 500, "internal_error", False),
        (KeyError("field"), 500, "internal_error", False),
        (MemoryError(), 503, "oom_contained", True),
    ],
)
def test_an_error_of_the_engine_is_not_the_clients(
    error: Made, status: int, code: str, *, retryable: bool
) -> None:
    failed = _failed(error, CHAT)
    assert (failed.status, failed.type, failed.code) == (status, "server_error", code)
    assert (failed.fault, failed.retryable) == ("upstream", retryable)
    assert "secret" not in failed.message
    assert "Error" not in failed.message


@pytest.mark.parametrize("error", [KeyError("function"), AttributeError("'str' has no 'get'")])
def test_what_breaks_while_the_body_is_read_is_the_bodys_fault(error: Exception) -> None:
    failed = _failed(error, CHAT, reading=True)
    assert (failed.status, failed.code, failed.fault) == (400, "invalid_value", "client")
    assert "get" not in failed.message


@pytest.mark.parametrize("content", [[], [{"type": "refusal", "refusal": "no"}]])
def test_an_item_that_no_chat_can_be_made_of_is_the_clients(content: list[Any]) -> None:
    from openai.types.responses import ResponseOutputMessage
    from vllm.entrypoints.openai.responses.utils import _construct_message_from_response_item

    fields = {"id": "msg_1", "role": "assistant", "status": "completed", "type": "message"}
    item = ResponseOutputMessage.model_validate(fields | {"content": content})
    with pytest.raises((LookupError, AttributeError)) as caught:
        _construct_message_from_response_item(item, prev_msg=None)
    found = _failed(caught.value, "/v1/responses")
    assert (found.status, found.code, found.param) == (400, "invalid_value", "input")
    assert _failed(caught.value, "/v1/responses", begun=True).status == 500
    assert _failed(IndexError("elsewhere"), "/v1/responses").status == 500


def test_what_vllm_keeps_inside_its_own_error_is_looked_at() -> None:
    error: Exception = import_module("vllm.v1.engine.exceptions").EngineGenerateError()
    error.__cause__ = _wrong("No.", "top_k")()
    assert _failed(error, CHAT).param == "top_k"


@pytest.mark.parametrize(
    ("status", "param", "told", "code"),
    [
        (404, "model", 404, "model_not_found"),
        (404, "response_id", 404, "previous_response_not_found"),
        (400, "input", 400, "context_length_exceeded"),
        (400, "tools", 400, "invalid_value"),
        (400, None, 400, "invalid_value"),
        (501, None, 400, "unsupported_parameter"),
        (503, None, 503, "overloaded"),
        (500, None, 500, "engine_error"),
    ],
)
def test_what_vllm_only_says_is_known_by_status_and_field(
    status: int, param: str | None, told: int, code: str
) -> None:
    from penstock.replica.vllm.failures import exceptions

    failed = exceptions.told(status, "Words.", param)
    assert (failed.status, failed.code, failed.param) == (told, code, param or "")


@pytest.mark.parametrize("error", [TypeError("TextEncodeInput must be"), UnicodeError("no")])
def test_half_a_character_is_told_as_such(error: Exception) -> None:
    assert "surrogate" in _failed(error, body=b'{"prompt": "\\ud83d"}').message
    assert "surrogate" not in _failed(error, body=b'{"prompt": "\\ud83d\\ude00"}').message


def test_a_dump_of_vllms_own_settings_is_left_out() -> None:
    said = _failed(_wrong("None are specified: {'json': None, 'regex': None}")).message
    assert said == "None are specified"


def test_a_grammar_that_is_not_valid_is_told_with_its_compilers_reason() -> None:
    error = _wrong("Invalid structural tag specification.")()
    error.__cause__ = RuntimeError('[09:33:24] /a/b.cc:4944: Unsupported type "nope"\n')
    said = 'Invalid structural tag specification: Unsupported type "nope".'
    assert _failed(error).message == said


def test_a_long_text_is_cut() -> None:
    assert len(_failed(ValueError("x" * 10_000_000), CHAT).message) < 700


def test_an_address_in_the_web_stays_and_a_path_of_the_machine_goes() -> None:
    said = _failed(ValueError("see https://json-schema.org/draft, not /srv/a/b.py"), CHAT)
    assert said.message == "see https://json-schema.org/draft, not"


def test_a_value_that_vllm_meets_too_late_is_still_the_clients() -> None:
    from penstock.replica.vllm.failures import exceptions

    failed = exceptions.not_generated(ValueError("surrogates not allowed"), begun=False)
    assert (failed.status, failed.fault) == (400, "client")


@pytest.mark.parametrize(("error", "begun"), [(ValueError("x"), True), (KeyError("x"), False)])
def test_what_breaks_later_or_otherwise_is_the_engines(error: Exception, *, begun: bool) -> None:
    from penstock.replica.vllm.failures import exceptions

    failed = exceptions.not_generated(error, begun=begun)
    assert (failed.status, failed.fault, failed.retryable) == (500, "upstream", False)


def _misread() -> Exception:
    """What pydantic says of an answer that does not fit its model."""
    try:
        TypeAdapter(int).validate_python("x")
    except ValueError as error:
        return error
    raise AssertionError("x is no number")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("Out of range float values are not JSON compliant: nan"),
        TypeError("secret"),
        OverflowError("secret"),
        NotImplementedError("secret"),
        TemplateError("secret"),
        _misread(),
    ],
)
def test_what_breaks_after_the_engine_has_answered_is_not_the_clients(error: Exception) -> None:
    failed = _failed(error, begun=True)
    assert (failed.status, failed.code, failed.fault) == (500, "engine_error", "upstream")
    assert _failed(error).fault == "client"


def test_what_vllm_calls_the_clients_fault_stays_so_after_the_engine_has_answered() -> None:
    assert _failed(_wrong("No.", "top_k"), begun=True).param == "top_k"
    half = _failed(UnicodeError("no"), body=b'{"prompt": "\\ud83d"}', begun=True)
    assert half.fault == "client"


def test_an_engine_that_is_dead_before_the_request_is_in_it_is_told_as_such() -> None:
    error = import_module("vllm.v1.engine.exceptions").EngineDeadError()
    failed = _failed(error)
    assert (failed.status, failed.code, failed.retryable) == (503, "engine_dead", True)
