"""The JSON schema of documents, from the models that read them: what editors complete by. Pure."""

from __future__ import annotations

from typing import Any

from penstock.control.admin.apply.documents import SHAPES, VERSION, WORD, Shape

DIALECT = "http://json-schema.org/draft-07/schema#"  # which every editor knows


def schema() -> dict[str, Any]:
    """Of one document, whichever kind it is."""
    definitions: dict[str, Any] = {}
    for kind, shape in SHAPES.items():
        made = _document(kind, shape)
        definitions |= made.pop("$defs", {})
        definitions[kind] = made
    return {
        "$schema": DIALECT,
        "title": "Penstock",
        "description": "what there is to be, a document for each object",
        "type": "object",
        "required": [WORD, "kind"],
        "properties": {WORD: {"const": VERSION}, "kind": {"enum": list(SHAPES)}},
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
                "then": {"$ref": f"#/definitions/{kind}"},
            }
            for kind in SHAPES
        ],
        "definitions": definitions,
    }


def _document(kind: str, shape: Shape) -> dict[str, Any]:
    """A body as its kind has it, which may leave out what is to stay as it is."""
    made = shape.model.model_json_schema(ref_template="#/definitions/{model}")
    words = {WORD: {"const": VERSION}, "kind": {"const": kind}}
    return {
        **made,
        "properties": {**words, **made["properties"]},
        "required": [WORD, "kind", *shape.key],
    }
