"""The OpenAPI document: FastAPI's own, with errors as they really come. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel

from penstock.control.admin.idempotency import HEADER, LONGEST
from penstock.control.admin.problems import MEDIA_TYPE, Problem

PROBLEM = {"$ref": "#/components/schemas/Problem"}
# Left over from FastAPI's own error bodies, which this API never sends.
FOREIGN_SCHEMAS = ("HTTPValidationError", "ValidationError")


# Doors that stand before every handler.
REFUSALS = {
    "401": "No token, or one that is not known",
    "403": "The token's role is too low",
    "422": "A value cannot be used, or a query parameter is not known",
}
BODY = {
    "400": "The body is no JSON",
    "413": "The body is larger than 1 MiB, or than 32 MiB of documents",
    "415": "The body is not application/json",
}
NAMED = {"404": "Nothing has this name"}
CHANGE = {"409": "Another one is in the way", "503": "The head cannot store it, or holds still"}
CONDITION = {"412": "It is not as the caller read it"}
IDEMPOTENCY_KEY = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "schema": {"type": "string", "maxLength": LONGEST},
    "description": "a text of the caller's; sent again with the same request within 24 hours, the "
    "request is not carried out again, and is answered as it was then",
}


def or_created(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """The answer of a PUT that has made what was not there."""
    return {HTTPStatus.CREATED.value: {"model": model, "description": "Created"}}


def with_problems(document: dict[str, Any]) -> dict[str, Any]:
    """Every error answer is a problem body, those that have to be reckoned with by their status."""
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas["Problem"] = Problem.model_json_schema()
    for name in FOREIGN_SCHEMAS:
        schemas.pop(name, None)
    for method, operation in _operations(document):
        taken = operation.setdefault("parameters", [])
        if method == "post" and IDEMPOTENCY_KEY not in taken:  # the document is made but once
            taken.append(IDEMPOTENCY_KEY)
        responses = operation["responses"]
        responses.pop("422", None)
        if operation.get("security"):
            for status, description in _refusals(method, operation).items():
                responses[status] = {"description": description}
        for status, response in responses.items():
            if status[0] in "45":
                response["content"] = {MEDIA_TYPE: {"schema": PROBLEM}}
    return document


def _refusals(method: str, operation: dict[str, Any]) -> dict[str, str]:
    """Statuses and what they mean for an operation, as far as its own document tells."""
    parameters = operation.get("parameters", ())
    found = dict(REFUSALS)
    if operation.get("requestBody"):
        found |= BODY
    if any(each["in"] == "path" for each in parameters):
        found |= NAMED
    if method != "get":
        found |= CHANGE
    if any(each["name"] == "if-match" for each in parameters):
        found |= CONDITION
    return found


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for methods in document["paths"].values():
        yield from methods.items()
