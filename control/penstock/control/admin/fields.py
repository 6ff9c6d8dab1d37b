"""The kinds of values that the admin API takes, as pydantic types."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StrictInt, StrictStr

from penstock.control.state.routing.limits import MAX_COUNT


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("only printable characters, please")
    return text


def _encodes(report: dict[str, Any]) -> dict[str, Any]:
    try:
        json.dumps(report, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("only text that UTF-8 can say: no half of a surrogate pair") from None
    return report


def one_of(*values: str, **more: Any) -> Any:
    """A field that the documents tell the values of; older clients take new ones for text."""
    return Field(json_schema_extra={"enum": [str(value) for value in values]}, **more)


Printable = Annotated[StrictStr, AfterValidator(_printable)]
Text = Annotated[Printable, Field(max_length=4096)]
Report = Annotated[dict[str, Any], AfterValidator(_encodes)]
Count = Annotated[StrictInt, Field(ge=0, le=MAX_COUNT)]
