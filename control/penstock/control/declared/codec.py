"""Values to documents and back, by what their fields declare."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from penstock.control.declared.fields import flat, nested

V = TypeVar("V")


class Codec(Generic[V]):
    """Of one dataclass. A field that a document lacks has its default, so that one which an older
    head wrote is read; what it has beside the fields is left out."""

    def __init__(self, kind: type[V]) -> None:
        self._kind = kind

    @cached_property
    def _adapter(self) -> TypeAdapter[V]:
        """Made when a document is first read: a store seldom has one of every kind."""
        return TypeAdapter(self._kind)

    def document(self, value: V) -> dict[str, Any]:
        """The value as JSON has it."""
        return {
            name: each.isoformat() if isinstance(each, datetime) else each
            for name, each in flat(value).items()
        }

    def value(self, document: Mapping[str, Any]) -> V:
        """The inverse of `document`. Raises `ValueError`, and what the value itself raises."""
        try:
            return self._adapter.validate_python(nested(self._kind, document))
        except ValidationError as error:
            raise ValueError("; ".join(_told(each) for each in error.errors())) from error


def _told(error: Any) -> str:
    return f"{'.'.join(map(str, error['loc']))}: {error['msg']}"
