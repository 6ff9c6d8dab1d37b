"""Requests are judged up to the first wrong entry of a list, not to the last.

pydantic tells of every wrong entry, once for each kind that it might have been: 8 KB of wrong
items in a response's input make it busy for half a minute, and 3 GB of memory, on the loop that
answers everybody. So the validators that FastAPI made of vLLM's request models are made once more,
with lists that stop at the first error. What is right, and the first error, stay what they were.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from pydantic_core import SchemaValidator

MOST_ENTRIES: Final = 10_000
"""Of a map whose values are judged, `logit_bias` say: there is no stopping early for those."""

_FAST: Final = ("int", "float", "str", "any")

_OPAQUE: Final = ("metadata", "serialization", "function", "cls")
"""Parts of a schema that say nothing of lists in it."""


def stop_at_first_errors(routes: Iterable[Any], paths: Collection[str]) -> None:
    """Does so for those routes of an app that have one of these paths."""
    for route in routes:
        field = getattr(route, "body_field", None)
        if field is not None and route.path in paths:
            adapter = field._type_adapter
            adapter.validator = validator_of(adapter.core_schema)


def validator_of(schema: Any) -> SchemaValidator:
    """One that fails fast; the validators that the models have already are none."""
    return SchemaValidator(failing_fast(schema), None, _use_prebuilt=False)


def failing_fast(schema: Any) -> Any:
    """A copy of a core schema, or of a part of one."""
    if isinstance(schema, list | tuple):
        return type(schema)(failing_fast(one) for one in schema)
    if not isinstance(schema, dict):
        return schema
    copy = {name: part if name in _OPAQUE else failing_fast(part) for name, part in schema.items()}
    if copy.get("type") == "list":
        copy["fail_fast"] = True
        copy["items_schema"] = _interrupted(copy.get("items_schema"))
    if copy.get("type") == "dict" and "values_schema" in copy and "ref" not in copy:
        few = {"type": "no-info", "function": _few}
        return {"type": "function-before", "function": few, "schema": copy}
    return copy


def _interrupted(schema: Any) -> Any:
    """The schema of a list's entries, between which other threads may run: pydantic lets go of
    Python's lock only where it calls Python. Numbers and texts are too fast to need it."""
    if not isinstance(schema, dict) or schema.get("type") in _FAST:
        return schema
    pause = {"type": "no-info", "function": _pause}
    return {"type": "function-before", "function": pause, "schema": schema}


def _pause(value: Any) -> Any:
    return value


def _few(value: Any) -> Any:
    if isinstance(value, dict) and len(value) > MOST_ENTRIES:
        raise ValueError(f"{len(value)} entries, at most {MOST_ENTRIES} are possible")
    return value
