"""What pydantic found wrong, in our words. Knows nothing of FastAPI, which takes half a second to
import where only a typed setting is checked."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.control.state.providers.secret_texts import looks_secret, names_secret

# There is no value, or its name is what is wrong.
_WITHOUT_VALUE = ("missing", "extra_forbidden", "json_invalid")


def place(loc: Iterable[int | str]) -> str:
    """Where it is wrong, as callers name it: without the names that pydantic gives to the types of
    which a value may be one, such as "list[str]"."""
    return ".".join(str(part) for part in loc if "[" not in str(part))


def refusal(error: Mapping[str, Any]) -> str:
    """What pydantic says is wrong, with the value that was given where it is short, and nobody's
    secret."""
    value, message = error["input"], str(error["msg"])
    plain = value is None or isinstance(value, str | int | float)
    if not plain or error["type"] in _WITHOUT_VALUE or looks_secret(str(value)):
        return message
    if any(names_secret(str(part)) for part in error["loc"]):
        return message
    return f"{message}, not {reprlib.repr(value)}"
