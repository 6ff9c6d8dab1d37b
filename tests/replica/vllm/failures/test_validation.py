"""Pydantic's errors, of models shaped like those of the API, in the client's terms."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError, field_validator

from penstock.replica.vllm.failures import validation


class SystemTurn(BaseModel):
    role: Literal["system"]
    content: str


class UserTurn(BaseModel):
    role: Literal["user"]
    content: str | list[dict[str, str]]


class TextFormat(BaseModel):
    type: Literal["text", "json_object"]


class SchemaFormat(BaseModel):
    type: Literal["json_schema"]
    schema_: dict[str, Any] = Field(alias="schema")


class Tool(BaseModel):
    name: str
    strict: bool | None = None


class ChatRequest(BaseModel):
    messages: list[SystemTurn | UserTurn]
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: int | None = None
    n: int = 1
    stop: str | Annotated[list[str], Field(max_length=4)] | None = None
    response_format: TextFormat | SchemaFormat | None = None
    tools: list[Tool] | None = None
    logit_bias: dict[str, float] | None = None

    @field_validator("n")
    @classmethod
    def _positive(cls, n: int) -> int:
        if n < 1:
            raise ValueError("n must be positive.")
        return n


class TextsRequest(BaseModel):
    input: str | list[str]


class TurnsRequest(BaseModel):
    messages: list[UserTurn]


def _read(model: Any, body: Any) -> validation.Finding:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(model).validate_python(body)
    errors = [error | {"loc": ("body", *error["loc"])} for error in caught.value.errors()]
    return validation.read(errors, body)


_HI = [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(
    ("body", "param", "code", "message"),
    [
        ({}, "messages", "missing_required_parameter", "'messages' is missing."),
        (
            {"messages": "hello"},
            "messages",
            "invalid_type",
            "'messages' should be a list; it is \"hello\".",
        ),
        (
            {"messages": [{"content": "x"}]},
            "messages.0.role",
            "missing_required_parameter",
            "'messages.0.role' is missing.",
        ),
        (
            {"messages": [{"role": "robot", "content": "x"}]},
            "messages.0.role",
            "invalid_value",
            "'messages.0.role' should be 'system' or 'user'; it is \"robot\".",
        ),
        (
            {"messages": [*_HI, {"role": "user", "content": 5}]},
            "messages.1.content",
            "invalid_type",
            "'messages.1.content' should be a string or a list; it is 5.",
        ),
        (
            {"messages": _HI, "temperature": "hot"},
            "temperature",
            "invalid_type",
            "'temperature' should be a number; it is \"hot\".",
        ),
        (
            {"messages": _HI, "temperature": 9},
            "temperature",
            "invalid_value",
            "'temperature' should be less than or equal to 2; it is 9.",
        ),
        (
            {"messages": _HI, "max_tokens": 3.5},
            "max_tokens",
            "invalid_type",
            "'max_tokens' should be a whole number; it is 3.5.",
        ),
        ({"messages": _HI, "n": 0}, "n", "invalid_value", "'n' is 0: n must be positive."),
        (
            {"messages": _HI, "response_format": {"type": "xml"}},
            "response_format.type",
            "invalid_value",
            "'response_format.type' should be 'text' or 'json_object' or 'json_schema'; "
            'it is "xml".',
        ),
        (
            {"messages": _HI, "response_format": {"type": "json_schema"}},
            "response_format.schema",
            "missing_required_parameter",
            "'response_format.schema' is missing.",
        ),
        (
            {"messages": _HI, "tools": [{"name": "f"}, {}]},
            "tools.1.name",
            "missing_required_parameter",
            "'tools.1.name' is missing.",
        ),
        (
            {"messages": _HI, "logit_bias": {"int": "x"}},
            "logit_bias.int",
            "invalid_type",
            "'logit_bias.int' should be a number; it is \"x\".",
        ),
        (
            {"messages": _HI, "stop": ["x"] * 5},
            "stop",
            "invalid_value",
            "'stop' is a list of 5: List should have at most 4 items after validation, not 5.",
        ),
    ],
)
def test_the_field_is_named_as_the_client_wrote_it(
    body: Any, param: str, code: str, message: str
) -> None:
    assert _read(ChatRequest, body) == validation.Finding(param, code, message)


def test_each_mistake_is_told_and_the_first_is_the_param() -> None:
    finding = _read(ChatRequest, {"temperature": "hot", "n": 0})
    assert finding.param == "messages"
    assert "'temperature' should be" in finding.message
    assert "'n' is 0" in finding.message


@pytest.mark.parametrize(
    ("body", "param"),
    [({}, "input"), ({"input": 5}, "input"), ({"messages": "x"}, "messages")],
)
def test_of_two_requests_at_one_endpoint_the_one_that_was_begun_is_meant(
    body: Any, param: str
) -> None:
    assert _read(TextsRequest | TurnsRequest, body).param == param


def test_a_list_that_is_only_looked_at_when_it_is_used_is_found_in_the_body() -> None:
    body = {"messages": [{"role": "user", "content": [{"type": "text"}]}], "stop": ["a"]}
    location = (0, "ChatCompletionContentPartTextParam", "text")
    error = {"type": "missing", "loc": location, "msg": "", "input": {"type": "text"}}
    assert validation.read([error], body).param == "messages.0.content.0.text"


def test_a_role_that_nobody_has_counts_before_fields_that_other_kinds_need() -> None:
    at = ("body", "input", "list[union[A,B]]", 0)
    errors: list[dict[str, Any]] = [
        {
            "type": "literal_error",
            "loc": (*at, "TurnItem", "role"),
            "msg": "Input should be 'user'",
            "input": "robot",
        },
        {"type": "missing", "loc": (*at, "CallItem", "call_id"), "msg": "", "input": {}},
        {"type": "missing", "loc": (*at, "CallItem", "type"), "msg": "", "input": {}},
        {"type": "missing", "loc": (*at, "ReferenceItem", "id"), "msg": "", "input": {}},
    ]
    finding = validation.read(errors, {"input": [{"role": "robot"}]})
    assert (finding.param, finding.code) == ("input.0.role", "invalid_value")


def test_of_two_kinds_that_need_one_field_each_the_first_is_meant() -> None:
    at = ("body", "messages", 0)
    errors: list[dict[str, Any]] = [
        {"type": "missing", "loc": (*at, "UserTurn", "role"), "msg": "", "input": {}},
        {"type": "missing", "loc": (*at, "OtherTurn", "author"), "msg": "", "input": {}},
    ]
    assert validation.read(errors, {"messages": [{}]}).param == "messages.0.role"


def test_of_branches_without_a_name_the_one_that_looked_deeper_is_meant() -> None:
    body = {"response_format": {"type": "json_schema", "json_schema": {"schema": "x"}}}
    wrap = ("body", "response_format", "function-wrap[_log()]")
    errors: list[dict[str, Any]] = [
        {"type": "dict_type", "loc": (*wrap, "json_schema", "schema"), "msg": "", "input": "x"},
        {"type": "literal_error", "loc": (*wrap, "type"), "msg": "", "input": "json_schema"},
        {"type": "missing", "loc": (*wrap, "format"), "msg": "", "input": {}},
    ]
    finding = validation.read(errors, body)
    assert (finding.param, finding.code) == ("response_format.json_schema.schema", "invalid_type")


def test_a_huge_value_is_described_and_not_sent_back() -> None:
    finding = _read(ChatRequest, {"messages": _HI, "max_tokens": "x" * 10_000_000})
    assert "(10000000 characters)" in finding.message
    assert len(finding.message) < 300


def test_thousands_of_wrong_values_make_a_short_message() -> None:
    finding = _read(ChatRequest, {"messages": [5] * 5000})
    assert finding.param == "messages.0"
    assert len(finding.message) < 600


def test_json_that_is_none_names_the_place() -> None:
    error = {
        "type": "json_invalid",
        "loc": ("body", 17),
        "msg": "JSON decode error",
        "input": {},
        "ctx": {"error": "Extra data"},
    }
    finding = validation.read([error], "text")
    message = "The body is not valid JSON: Extra data, at character 17."
    assert finding == validation.Finding("", "invalid_json", message)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("missing", None, "The body is empty: send a JSON object."),
        ("model_attributes_type", [], "The body must be a JSON object; it is []."),
    ],
)
def test_a_body_that_is_no_object_is_invalid_json(kind: str, value: Any, message: str) -> None:
    error = {"type": kind, "loc": ("body",), "msg": "", "input": value}
    assert validation.read([error], value) == validation.Finding("", "invalid_json", message)


@pytest.mark.parametrize(
    ("location", "param"),
    [
        ((0, "ChatCompletionContentPartTextParam", "text"), "0.text"),
        (("tools", 0, "function-after[_check(), Tool]", "name"), "tools.0.name"),
        (("input", "list[union[A,B]]", 0, "Message", "str"), "input.0"),
    ],
)
def test_without_the_body_class_names_are_known_by_their_form(
    location: tuple[Any, ...], param: str
) -> None:
    error = {"type": "string_type", "loc": location, "msg": "Input should be x", "input": 1}
    assert validation.read([error], None).param == param


@pytest.mark.parametrize(
    ("location", "wrong", "param"),
    [
        ((0, "function", "arguments"), 7, "messages.1.tool_calls.0.function.arguments"),
        ((0, "Call", "function", "str"), 5, "messages.1.tool_calls.0.function"),
        ((1, "id"), [], "messages.1.tool_calls.1.id"),
        ((1, "id"), None, "messages.1.tool_calls.1.id"),
    ],
)
def test_what_is_wrong_deep_in_a_list_that_is_read_later_has_its_whole_path(
    location: tuple[Any, ...], wrong: Any, param: str
) -> None:
    calls: list[Any] = [{"id": "a", "function": {"arguments": "{}"}} for _ in range(2)]
    place: Any = calls
    *way, last = [part for part in location if part not in ("Call", "str")]
    for part in way:
        place = place[part]
    place[last] = wrong
    body = {"messages": [{"role": "user", "content": "x"}, {"tool_calls": calls}]}
    error = {"type": "string_type", "loc": location, "msg": "", "input": wrong}
    assert validation.read([error], body).param == param


@pytest.mark.parametrize(
    "value", [None, True, 1.5, "text", "\ud83d", {"a": 1}, [1], b"\xff", float("nan")]
)
def test_any_value_can_be_shown(value: Any) -> None:
    assert 0 < len(validation.shown(value)) < 100
    json.dumps(validation.shown(value)).encode()


def test_a_number_of_thousands_of_digits_can_be_shown() -> None:
    assert validation.shown(10**5000) == "a number of more than 60 digits"
