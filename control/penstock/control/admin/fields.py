"""The kinds of values that the admin API takes, as pydantic types."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field, StrictInt, StrictStr

from penstock.control.state.routing.limits import MAX_COUNT


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("only printable characters, please")
    return text


def one_of(*values: str, **more: Any) -> Any:
    """A field that the documents tell the values of; older clients take new ones for text."""
    return Field(json_schema_extra={"enum": [str(value) for value in values]}, **more)


Printable = Annotated[StrictStr, AfterValidator(_printable)]
Text = Annotated[Printable, Field(max_length=4096)]
Count = Annotated[StrictInt, Field(ge=0, le=MAX_COUNT)]
