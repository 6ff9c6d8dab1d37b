"""Which schemas have an answer that ends."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.replica.vllm.guards import finite

_NODE: dict[str, Any] = {"type": "object", "properties": {"next": {"$ref": "#"}}}
_LEFT_RIGHT: dict[str, Any] = {
    "$defs": {
        "left": {"type": "object", "properties": {"r": {"$ref": "#/$defs/right"}}},
        "right": {
            "type": "object",
            "properties": {"l": {"$ref": "#/$defs/left"}},
            "required": ["l"],
        },
    },
    "$ref": "#/$defs/right",
}


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        _NODE,
        _NODE | {"required": ["other"]},
        _LEFT_RIGHT,
        {"type": "array", "items": {"$ref": "#"}},
        {"type": "array", "items": {"$ref": "#"}, "minItems": 0},
        {"anyOf": [{"type": "null"}, {"$ref": "#"}]},
        {"type": ["object", "null"], "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"$ref": "#/nowhere"},
        {"$ref": "https://example.com/schema"},
        {"enum": [1], "$ref": "#"},
        {"type": "object", "properties": {"$ref": {"type": "string"}}, "required": ["$ref"]},
        "no schema",
    ],
)
def test_a_schema_that_can_end_has_an_answer(schema: Any) -> None:
    assert finite.has_answer(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        _NODE | {"required": ["next"]},
        _LEFT_RIGHT
        | {"$defs": _LEFT_RIGHT["$defs"] | {"left": {"allOf": [{"$ref": "#/$defs/right"}]}}},
        {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
        {"type": "array", "prefixItems": [{"$ref": "#"}], "minItems": 1},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#/anyOf/0"}]},
        {"oneOf": [{"$ref": "#"}]},
        {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}, "required": ["a"]},
        False,
    ],
)
def test_a_schema_that_always_needs_itself_has_none(schema: Any) -> None:
    assert not finite.has_answer(schema)


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"response_format": {"json_schema": {"schema": {"$ref": "#"}}}}, "response_format"),
        ({"structured_outputs": {"json": '{"$ref": "#"}'}}, "structured_outputs"),
        ({"structured_outputs": {"json": "{not json"}}, ""),
        ({"text": {"format": {"schema": {"$ref": "#"}}}}, "text"),
        (
            {"response_format": {"type": "json_object"}, "tools": [{"schema": {"$ref": "#"}}]},
            "tools",
        ),
        ({"tools": [{"parameters": {}}, {"parameters": {"$ref": "#"}}]}, "tools"),
        ({"tools": [{"function": {"parameters": {"$ref": "#"}}}]}, "tools"),
        ({"tools": [{"input_schema": {"$ref": "#"}}]}, "tools"),
        ({"tools": [{"input_schema": _NODE}]}, ""),
        ({"tools": [{"function": {"name": "parameters", "parameters": None}}]}, ""),
    ],
)
def test_the_field_with_an_endless_schema_is_named(wanted: dict[str, Any], field: str) -> None:
    assert finite.endless(wanted) == field


def test_a_schema_made_to_be_slow_is_let_through() -> None:
    definitions = {
        f"d{i}": {"type": "object", "properties": {"a": {"$ref": f"#/$defs/d{i + 1}"}}}
        | {"required": ["a"]}
        for i in range(1500)
    }
    assert finite.has_answer({"$defs": definitions | {"d1500": {}}, "$ref": "#/$defs/d0"})
