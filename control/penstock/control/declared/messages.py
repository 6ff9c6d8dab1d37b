"""Messages from values and back, where the names of fields agree. Pure.

What has another name, or means another thing under the same one, is given by the caller.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, MutableSequence
from dataclasses import fields
from enum import Enum
from functools import cache
from typing import Any, TypeVar

from google.protobuf.descriptor import Descriptor, EnumDescriptor
from google.protobuf.message import Message

M = TypeVar("M", bound=Message)
V = TypeVar("V")
E = TypeVar("E", bound=Enum)


def message_of(kind: type[M], *values: object, **own: Any) -> M:
    """A message of what these values have: of several with a field's name, the first counts."""
    found = dict(own)
    for name in kind.DESCRIPTOR.fields_by_name:
        if name not in own:
            having = (each for each in values if hasattr(each, name))
            if (value := next(having, None)) is not None:
                found[name] = getattr(value, name)
    return kind(**found)


def value_of(kind: Callable[..., V], message: Message, **own: Any) -> V:
    """A value of what a message has; lists become tuples."""
    names = (name for name in _shared(kind, message.DESCRIPTOR) if name not in own)
    return kind(**{name: _read(getattr(message, name)) for name in names}, **own)


def numbers_of(kind: EnumDescriptor, members: Iterable[E]) -> dict[E, int]:
    """The number of each member: of the enumerator that has its name, behind the enum's own. Raises
    `KeyError` where there is none."""
    prefix = re.sub(r"\B(?=[A-Z])", "_", kind.name).upper()
    return {each: kind.values_by_name[f"{prefix}_{each.name}"].number for each in members}


def members_of(kind: EnumDescriptor, members: Iterable[E]) -> dict[int, E]:
    """The inverse of `numbers_of`."""
    return {number: each for each, number in numbers_of(kind, members).items()}


def _read(value: Any) -> Any:
    return tuple(value) if isinstance(value, MutableSequence) else value


@cache
def _shared(kind: Any, message: Descriptor) -> tuple[str, ...]:
    """The names that both have, of a dataclass or a named tuple."""
    names = kind._fields if issubclass(kind, tuple) else [each.name for each in fields(kind)]
    return tuple(name for name in names if name in message.fields_by_name)
