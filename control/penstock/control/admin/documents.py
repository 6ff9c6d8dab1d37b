"""The OpenAPI document: FastAPI's own, with errors as they really come. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.control.admin.problems import MEDIA_TYPE, Problem

PROBLEM = {"$ref": "#/components/schemas/Problem"}
# Left over from FastAPI's own error bodies, which this API never sends.
FOREIGN_SCHEMAS = ("HTTPValidationError", "ValidationError")


def with_problems(document: dict[str, Any]) -> dict[str, Any]:
    """Every error answer is a problem body."""
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas["Problem"] = Problem.model_json_schema()
    for name in FOREIGN_SCHEMAS:
        schemas.pop(name, None)
    for responses in _responses(document):
        responses.pop("422", None)  # in 4XX
        for status in ("4XX", "5XX"):
            if status in responses:
                responses[status]["content"] = {MEDIA_TYPE: {"schema": PROBLEM}}
    return document


def _responses(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for methods in document["paths"].values():
        for operation in methods.values():
            yield operation["responses"]
