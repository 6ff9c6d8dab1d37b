"""The kinds of values that the admin API takes, as pydantic types."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field, StrictInt, StrictStr

from penstock.control.state.tenancy.spend import MOST_USD

MAX_COUNT = 2**31 - 1


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("only printable characters, please")
    return text


def one_of(*values: str) -> Any:
    """A field that the documents tell the values of; older clients take new ones for text."""
    return Field(json_schema_extra={"enum": [str(value) for value in values]})


Text = Annotated[StrictStr, Field(max_length=4096), AfterValidator(_printable)]
Count = Annotated[StrictInt, Field(ge=0, le=MAX_COUNT)]
Dollars = Annotated[float, Field(strict=True, ge=0, le=MOST_USD, allow_inf_nan=False)]
Share = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
