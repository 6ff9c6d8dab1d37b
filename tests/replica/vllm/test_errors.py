"""vLLM's error bodies, as captured from 0.32, in the OpenAI API's terms."""

from __future__ import annotations

import json

import pytest

from penstock.replica.engine import Call
from penstock.replica.vllm import errors

CHAT = "/v1/chat/completions"


def _body(message: str, kind: str = "Bad Request", code: int = 400, param: object = None) -> bytes:
    return json.dumps(
        {"error": {"message": message, "type": kind, "code": code, "param": param}}
    ).encode()


_NOT_JSON = (
    "1 validation error:\n  {'type': 'json_invalid', 'loc': 'body.1', 'msg': 'JSON decode error',"
    " 'input': '<dict of 0 items>', 'ctx': {'error': 'Expecting value'}}"
)
_MISSING = (
    "1 validation error:\n  {'type': 'missing', 'loc': 'body.messages', 'msg': 'Field required',"
    " 'input': '<dict of 0 items>'}"
)
_TOO_LONG = (
    "This model's maximum context length is 4096 tokens. However, your prompt contains at least "
    "4097 input tokens. (parameter=input_tokens, value=4097)"
)


@pytest.mark.parametrize(
    ("message", "param", "code", "field", "said"),
    [
        (_NOT_JSON, "body.1", "invalid_json", "", "body: JSON decode error: Expecting value"),
        (
            _MISSING,
            "body.messages",
            "missing_required_parameter",
            "messages",
            "messages: Field required",
        ),
        (
            "temperature must be non-negative, got -3.0. (parameter=temperature, value=-3.0)",
            "temperature",
            "invalid_value",
            "temperature",
            "temperature must be non-negative, got -3.0.",
        ),
    ],
)
def test_a_bad_request_names_its_field(
    message: str, param: str, code: str, field: str, said: str
) -> None:
    failed = errors.from_answer(400, _body(message, param=param), CHAT)
    assert (failed.status, failed.type) == (400, "invalid_request_error")
    assert (failed.code, failed.param, failed.message) == (code, field, said)
    assert (failed.fault, failed.retryable) == ("client", False)


@pytest.mark.parametrize(("path", "field"), [(CHAT, "messages"), ("/v1/completions", "prompt")])
def test_a_prompt_that_is_too_long_has_the_code_that_clients_look_for(
    path: str, field: str
) -> None:
    failed = errors.from_answer(400, _body(_TOO_LONG, param="input_tokens"), path)
    assert (failed.code, failed.param) == ("context_length_exceeded", field)
    assert failed.message.endswith("4097 input tokens.")


def test_an_unknown_model_is_model_not_found() -> None:
    failed = errors.from_answer(404, _body("no such", "NotFoundError", 404, "model"), CHAT)
    assert (failed.status, failed.code, failed.param) == (404, "model_not_found", "model")


def test_a_full_queue_may_be_retried_elsewhere() -> None:
    failed = errors.from_answer(503, _body("busy", "Service Unavailable", 503), CHAT)
    assert (failed.code, failed.fault, failed.retryable) == ("overloaded", "upstream", True)
    assert failed.retry_after_ms > 0


def test_what_is_not_implemented_is_the_clients_to_leave_out() -> None:
    failed = errors.from_answer(501, _body("no", code=501), CHAT)
    assert (failed.status, failed.code, failed.fault) == (400, "unsupported_parameter", "client")


def test_a_fault_of_the_engine_is_not_the_clients() -> None:
    failed = errors.from_answer(500, _body("boom", code=500), CHAT)
    assert (failed.status, failed.type, failed.fault) == (500, "server_error", "upstream")


@pytest.mark.parametrize("body", [b"", b"null", b"[1]", b'{"error":"text"}', b"<html>"])
def test_a_body_of_another_shape_still_makes_an_error(body: bytes) -> None:
    failed = errors.from_answer(400, body, CHAT)
    assert failed.message


def test_an_error_within_a_stream_is_read_from_its_event() -> None:
    event = b"data: " + _body(_TOO_LONG) + b"\n\n"
    assert event.startswith(errors.STREAM_ERROR)
    assert errors.from_event(event, CHAT).code == "context_length_exceeded"


def test_an_adapter_that_is_not_loaded_is_told_by_its_name() -> None:
    failed = errors.unknown_adapter(Call("r", CHAT, b"", "mini:x", adapter="x@1"))
    assert (failed.status, failed.code) == (404, "model_not_found")
    assert "mini:x" in failed.message
    assert "x@1" in failed.message


def test_a_value_that_vllm_meets_too_late_is_still_the_clients() -> None:
    failed = errors.not_generated(ValueError("surrogates not allowed"), begun=False)
    assert (failed.status, failed.fault, failed.message) == (
        400,
        "client",
        "surrogates not allowed",
    )


@pytest.mark.parametrize(("error", "begun"), [(ValueError("x"), True), (KeyError("x"), False)])
def test_what_breaks_later_or_otherwise_is_the_engines(error: Exception, *, begun: bool) -> None:
    failed = errors.not_generated(error, begun=begun)
    assert (failed.status, failed.fault, failed.retryable) == (500, "upstream", False)
