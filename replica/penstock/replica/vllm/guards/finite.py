"""Whether a JSON schema has any answer that ends.

An engine follows a schema token by token: one whose every answer holds another of its own kind
("a node must have a node") is written until the token limit, or fails inside. Such a schema is
found beforehand: what can end is grown from what plainly does, until nothing more is found. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

_SCHEMAS: Final = ("schema", "json", "parameters", "input_schema")
_MOST_LOOKS: Final = 100_000  # a tenth of a second; what takes more is let through


def endless(wanted: Mapping[str, Any]) -> str:
    """The first of these fields of a request that holds a schema without an answer that ends;
    empty where there is none."""
    for name, value in wanted.items():
        if not all(has_answer(schema) for schema in _schemas(value)):
            return name
    return ""


def has_answer(schema: Any) -> bool:
    """Whether some value of the schema is finite; true of all that is not understood."""
    references = {name: _pointed(schema, name) for name in _references(schema)}
    known = _Known()
    while found := [name for name, one in references.items() if known.ends_newly(name, one)]:
        known.ending.update(found)
    return known.ends(schema)


class _Known:
    """The references that are known to have an answer that ends."""

    def __init__(self) -> None:
        self.ending: set[str] = set()
        self._looks = 0

    def ends_newly(self, name: str, schema: Any) -> bool:
        return name not in self.ending and self.ends(schema)

    def ends(self, schema: Any) -> bool:
        """Whether a value of this schema is known to end."""
        self._looks += 1
        if not isinstance(schema, Mapping) or self._looks > _MOST_LOOKS:
            return schema is not False
        if "enum" in schema or "const" in schema:
            return True
        return (
            self._reference_ends(schema.get("$ref"))
            and all(self.ends(one) for one in _list(schema.get("allOf")))
            and self._one_ends(_list(schema.get("anyOf")))
            and self._one_ends(_list(schema.get("oneOf")))
            and self._content_ends(schema)
        )

    def _reference_ends(self, name: Any) -> bool:
        return not _is_local(name) or name in self.ending

    def _one_ends(self, choices: list[Any]) -> bool:
        return not choices or any(self.ends(one) for one in choices)

    def _content_ends(self, schema: Mapping[str, Any]) -> bool:
        """One of the types has a value: objects need their required properties, lists as many
        items as they must have, all others nothing."""
        kinds = schema.get("type")
        named = {kinds} if isinstance(kinds, str) else set(map(str, _list(kinds)))
        if named - {"object", "array"}:
            return True
        if not named:
            return self._object_ends(schema) and self._items_end(schema)
        return ("object" in named and self._object_ends(schema)) or (
            "array" in named and self._items_end(schema)
        )

    def _object_ends(self, schema: Mapping[str, Any]) -> bool:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return True
        required = [one for one in _list(schema.get("required")) if isinstance(one, str)]
        return all(self.ends(properties[one]) for one in required if one in properties)

    def _items_end(self, schema: Mapping[str, Any]) -> bool:
        least = schema.get("minItems")
        needed = least if isinstance(least, int) else 0
        first = _list(schema.get("prefixItems"))
        if not all(self.ends(one) for one in first[:needed]):
            return False
        return needed <= len(first) or self.ends(schema.get("items", True))


def _schemas(value: Any) -> Iterator[Any]:
    """The schemas in a field of a request, as `response_format` and `tools` and their like hold
    them."""
    if isinstance(value, list):
        for one in value:
            yield from _schemas(one)
    if not isinstance(value, Mapping):
        return
    for key, one in value.items():
        if key in _SCHEMAS and isinstance(one, str):
            yield _parsed(one)
        elif key in _SCHEMAS:
            yield one
        else:
            yield from _schemas(one)


def _references(schema: Any) -> Iterator[str]:
    """The local references anywhere in a schema, without recursion."""
    left = [schema]
    while left:
        value = left.pop()
        if isinstance(value, Mapping):
            left += value.values()
            name = value.get("$ref")
            if isinstance(name, str) and _is_local(name):
                yield name
        elif isinstance(value, list):
            left += value


def _is_local(name: Any) -> bool:
    return isinstance(name, str) and name.startswith("#")


def _pointed(root: Any, name: str) -> Any:
    """What a reference inside the schema names; true, which allows all, where there is nothing."""
    value = root
    for part in name.removeprefix("#").split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return True
    return value


def _parsed(text: str) -> Any:
    """True, which allows all, where it is no JSON: vLLM tells the client of that."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return True


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
