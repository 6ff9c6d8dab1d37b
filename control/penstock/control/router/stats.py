"""What a program records for its later asks, as custom routers of Ray Serve do. Bounded: what was
recorded longest ago goes first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.control.router.api import Engine

Value = bool | int | float | str

MOST_KEYS: Final = 16_384
MOST_NAMES: Final = 32  # of one key
MOST_TEXT: Final = 256  # characters, of a key, a name or a value
_NOTHING: Final[Mapping[str, Value]] = MappingProxyType({})


class Stats:
    """Values by key and name: of an engine, a session, whatever the program counts."""

    def __init__(self) -> None:
        self._recorded: OrderedDict[str, dict[str, Value]] = OrderedDict()

    def record_routing_stats(self, key: Engine | str, values: Mapping[str, Value]) -> None:
        """Keeps these of that engine or key, beside what is there. Raises ValueError for what is
        too long or no number or text."""
        name = _name(key)
        merged = {**self._recorded.get(name, {}), **{_text(n): _value(values[n]) for n in values}}
        if len(merged) > MOST_NAMES:
            raise ValueError(f"more than {MOST_NAMES} values of one key")
        self._recorded[name] = merged
        self._recorded.move_to_end(name)
        if len(self._recorded) > MOST_KEYS:
            self._recorded.popitem(last=False)

    def routing_stats(self, key: Engine | str) -> Mapping[str, Value]:
        """What was recorded of that engine or key; empty: nothing."""
        found = self._recorded.get(_name(key))
        return _NOTHING if found is None else MappingProxyType(found)


def _name(key: Engine | str) -> str:
    return _text(key if isinstance(key, str) else key.id)


def _text(text: str) -> str:
    if not isinstance(text, str) or len(text) > MOST_TEXT:
        raise ValueError(f"a name must be a text of at most {MOST_TEXT} characters")
    return text


def _value(value: Value) -> Value:
    if isinstance(value, str):
        return _text(value)
    if not isinstance(value, int | float) or (isinstance(value, int) and abs(value) >= 1 << 63):
        raise ValueError("a value must be a number or a text")
    return value
