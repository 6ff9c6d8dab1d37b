"""Requests that would hold an engine for everybody are refused by the field that does."""

from __future__ import annotations

import json
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.replica.vllm.guards.costs import NotOffered, check, grammar_field

_POISON = "((a{0,100}){0,100}){0,100}"
_WIDE = {"properties": {f"p{number}": {"type": "integer"} for number in range(200)}}
_MANY = {"properties": {f"p{number}": {"type": "integer"} for number in range(100)}}
_NAMES = {"type": "array", "maxItems": 1000, "items": {"type": "string", "maxLength": 10_000}}
_BIG = {"type": "string", "enum": ["x" * 1000] * 300}


class Model(SimpleNamespace):
    """A pydantic model, as far as it is looked at."""

    def model_dump(self, *, by_alias: bool) -> dict[str, Any]:
        return vars(self)


def _deep(levels: int) -> Any:
    schema: Any = {}
    for _ in range(levels):
        schema = {"not": schema}
    return schema


def _schema(schema: Any) -> Model:
    return Model(type="json_schema", json_schema={"name": "x", "schema": schema})


def _repeats(size: int, count: int) -> Any:
    return SimpleNamespace(max_pattern_size=size, min_pattern_size=1, min_count=count)


def _tool(schema: Any) -> list[Model]:
    return [Model(type="function", function={"name": "f", "parameters": schema})]


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [
        ({"structured_outputs": SimpleNamespace(regex=_POISON)}, "structured_outputs"),
        ({"structured_outputs": SimpleNamespace(json=_WIDE)}, "structured_outputs"),
        ({"structured_outputs": SimpleNamespace(json=json.dumps(_WIDE))}, "structured_outputs"),
        ({"structured_outputs": SimpleNamespace(choice=["x" * 99] * 9999)}, "structured_outputs"),
        (
            {"structured_outputs": SimpleNamespace(grammar="a{99} b{99} c{99}")},
            "structured_outputs",
        ),
        (
            {"structured_outputs": SimpleNamespace(structural_tag=json.dumps({"a": [_WIDE]}))},
            "structured_outputs",
        ),
        ({"response_format": _schema({"items": [{"pattern": _POISON}]})}, "response_format"),
        ({"response_format": _schema({"patternProperties": {_POISON: {}}})}, "response_format"),
        ({"response_format": _schema(_BIG)}, "response_format"),
        ({"tools": _tool(_WIDE), "tool_choice": "required"}, "tools"),
        ({"tools": _tool(_WIDE), "tool_choice": "auto"}, "tools"),
        ({"response_format": _schema({"allOf": [_MANY] * 120})}, "response_format"),
        (
            {"response_format": _schema({"anyOf": [{"pattern": "a{0,10000}"}] * 9})},
            "response_format",
        ),
        (
            {
                "response_format": _schema({"pattern": "a{0,30000}"}),
                "tools": _tool({"pattern": "a{0,30000}"}),
            },
            "tools",
        ),
        ({"response_format": _schema({"maxItems": 10**9, "items": _NAMES})}, "response_format"),
        ({"response_format": _schema({"maxItems": 10**4000})}, "response_format"),
        ({"response_format": _schema({"minLength": 1e300})}, "response_format"),
        ({"structured_outputs": SimpleNamespace(regex="[" * 200_001)}, "structured_outputs"),
        ({"structured_outputs": SimpleNamespace(regex="[" * 50_001)}, "structured_outputs"),
        ({"structured_outputs": SimpleNamespace(json=[0] * 200_001)}, "structured_outputs"),
        ({"structured_outputs": SimpleNamespace(json=_deep(101))}, "structured_outputs"),
        ({"stop": ["x"] * 65}, "stop"),
        ({"bad_words": ["x"] * 257}, "bad_words"),
        ({"stop_token_ids": list(range(65))}, "stop_token_ids"),
        ({"repetition_detection": _repeats(65, 2)}, "repetition_detection"),
        ({"repetition_detection": _repeats(1, 65)}, "repetition_detection"),
    ],
)
def test_what_would_hold_an_engine_is_refused_by_its_field(
    fields: dict[str, Any], parameter: str
) -> None:
    with pytest.raises(NotOffered) as caught:
        check(SimpleNamespace(**fields))
    assert caught.value.parameter == parameter


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"stop": "x", "bad_words": None, "structured_outputs": None},
        {"repetition_detection": _repeats(64, 64)},
        {"stop": ["a", "b"], "response_format": Model(type="json_object")},
        {"response_format": _schema(_WIDE | {"required": list(_WIDE["properties"])})},
        {"response_format": _schema({"properties": {"pattern": {"type": "string"}}})},
        {"structured_outputs": SimpleNamespace(json="{", regex=None)},
        {"tools": _tool(_WIDE), "tool_choice": "none"},
        {"tools": _tool(_MANY), "tool_choice": "auto"},
        {"response_format": _schema(_NAMES)},
        {"tools": _tool({"properties": {}}), "tool_choice": Model(type="function")},
    ],
)
def test_ordinary_requests_pass(fields: dict[str, Any]) -> None:
    check(SimpleNamespace(**fields))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    ["properties", "required", "maxItems", "pattern", "json", "grammar"]
                )
                | st.text(),
                inner,
            )
        ),
    )
)
def test_whatever_is_asked_for_nothing_but_too_costly_is_raised(wanted: Any) -> None:
    with suppress(NotOffered):
        check(SimpleNamespace(structured_outputs=SimpleNamespace(json=wanted)))


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"response_format": _schema({})}, "response_format"),
        ({"structured_outputs": SimpleNamespace(grammar="a")}, "structured_outputs"),
        ({"tools": _tool({}), "tool_choice": "required"}, "tools"),
        ({"tools": _tool({}), "tool_choice": "none"}, ""),
        ({"tools": _tool({}), "response_format": _schema({})}, ""),
        ({}, ""),
    ],
)
def test_the_field_that_binds_an_answer_is_named_where_it_is_known(
    fields: dict[str, Any], field: str
) -> None:
    assert grammar_field(SimpleNamespace(**fields)) == field
