"""JSON and JSON Schemas: whether a text is valid. Pure; nothing is ever fetched."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, ValuesView
from functools import lru_cache
from itertools import product
from typing import Any

from jsonschema import SchemaError
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from penstock.evals.comparison.bad_check import BadCheck


def validator(schema: object) -> Callable[[str], bool]:
    """Says of a text whether it is JSON, all of it, and valid. Raises `BadCheck`."""
    if not isinstance(schema, dict):
        raise BadCheck("must be a JSON Schema, an object")
    kind = validator_for(schema)
    try:
        kind.check_schema(schema)
        _check_references(schema)
    except SchemaError as error:
        raise BadCheck(f"is no JSON Schema: {error.message[:200]}") from error
    except RecursionError as error:
        raise BadCheck("is nested too deeply") from error
    # An empty registry: what a schema refers to is looked up within it, never fetched.
    checked = kind(schema, registry=Registry())

    def valid(text: str) -> bool:
        try:
            return bool(checked.is_valid(json.loads(text, parse_constant=_no_constant)))
        except (ValueError, RecursionError):
            return False

    return valid


def strangers_validator(schema: Mapping[str, Any]) -> Callable[[str], bool] | None:
    """That of a schema that came with a request; None where nobody could check it, which is no
    model's fault."""
    return _kept(json.dumps(schema, sort_keys=True))


@lru_cache(maxsize=256)  # a service asks for the same few schemas again and again
def _kept(schema: str) -> Callable[[str], bool] | None:
    try:
        return validator(json.loads(schema))
    except BadCheck:
        return None


def _check_references(schema: Mapping[str, Any]) -> None:
    resolver = Registry().resolver_with_root(DRAFT202012.create_resource(schema))
    if any("$id" in each for each in _objects(schema) if each is not schema):
        raise BadCheck("gives a part of itself an $id: refer to it by #/...")
    for each, key in product(_objects(schema), ("$ref", "$dynamicRef")):
        reference = each.get(key, "#")
        if not isinstance(reference, str):
            continue
        if not reference.startswith("#"):
            raise BadCheck(f"refers to {reference[:200]!r}: it must hold all that it refers to")
        try:
            resolver.lookup(reference)
        except Unresolvable as error:
            raise BadCheck(f"refers to {reference[:200]!r}, which it does not hold") from error


def _objects(schema: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, dict):
        yield schema
    values = schema.values() if isinstance(schema, dict) else schema
    if isinstance(values, list | ValuesView):
        for value in values:
            yield from _objects(value)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")
