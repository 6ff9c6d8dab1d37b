"""How a field is declared, and what a value of such fields comes to. Pure.

Outside of the code a spec is flat: each field has one name, however deep it stands. `flat` gives a
value's fields by that name, as JSON would have them; `nested` is on the way back, which `codec.py`
goes to the end.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import MISSING, dataclass, is_dataclass, replace
from enum import Enum, StrEnum
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar, get_type_hints

from penstock.control.errors import InvalidInput

E = TypeVar("E", bound=StrEnum)
V = TypeVar("V")
_KEY: Final = "declared"


class Form(NamedTuple):
    """How a value is said, where that is otherwise than its type has it."""

    plain: Callable[[Any], Any]  # what JSON has
    read: Callable[[Any], Any]  # the inverse, of what the admin API takes, too


PAIRS: Final = Form(dict, lambda said: tuple(sorted(said.items())))
"""Names and values: sorted pairs here, an object outside."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What a field says of itself beside name, type and default."""

    text: str = ""  # for people, and not the whole of a sentence; {unit}: the unit
    unit: str = ""  # what a number counts
    role: str = "operator"  # the least of `Role` that may set it
    name: str = ""  # outside of its class, where it is another one
    ge: float | None = None  # the least that it may be
    le: float | None = None
    shape: str = ""  # as users type it, where that is no JSON
    most: int | None = None  # items
    choices: tuple[str, ...] = ()  # of a text
    examples: tuple[Any, ...] = ()
    form: Form | None = None
    inner: bool = False  # a dataclass, whose fields stand beside the others outside
    prefix: str = ""  # of their names

    @property
    def description(self) -> str:
        """The text with its unit."""
        return self.text.replace("{unit}", self.unit)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field as it is known outside."""

    name: str
    path: tuple[str, ...]  # of attributes
    kind: Any  # its type
    default: Any  # MISSING: it has none
    declared: Declared

    def of(self, value: Any) -> Any:
        """What a value says here."""
        for step in self.path:
            value = getattr(value, step)
        return value


def said(text: str = "", **more: Any) -> dict[str, Any]:
    """What `field` is told of a field that has to be given, by what `Declared` has of it."""
    return {_KEY: Declared(text, **more)}


def setting(text: str, default: Any, **more: Any) -> Any:
    """A field with a default; the rest likewise."""
    return dataclasses.field(default=default, metadata=said(text, **more))


def inner(kind: Callable[[], Any], *, prefix: str = "") -> Any:
    """A field for a dataclass of further ones, whose defaults are its own."""
    return dataclasses.field(default_factory=kind, metadata=said(inner=True, prefix=prefix))


@cache
def leaves(kind: Hashable) -> tuple[Leaf, ...]:
    """The fields of a dataclass, in their order."""
    return tuple(_leaves(kind))


def _leaves(kind: Any) -> Iterator[Leaf]:
    hints = get_type_hints(kind)
    for each in dataclasses.fields(kind):
        known, of = each.metadata.get(_KEY, Declared()), hints[each.name]
        if known.inner:
            for leaf in leaves(of):
                path = (each.name, *leaf.path)
                yield replace(leaf, name=known.prefix + leaf.name, path=path)
        elif each.init:
            default = each.default if each.default_factory is MISSING else each.default_factory()
            yield Leaf(known.name or each.name, (each.name,), of, default, known)


def named(*kinds: type, without: Collection[str] = ()) -> Iterator[Leaf]:
    """The fields of several dataclasses."""
    return (leaf for kind in kinds for leaf in leaves(kind) if leaf.name not in without)


def flat(value: Any) -> dict[str, Any]:
    """A value's fields by their names outside; times as they are."""
    return {leaf.name: _plain(leaf, leaf.of(value)) for leaf in leaves(value.__class__)}


def nested(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by name as they stand in the dataclass; what there is no field for is left out."""
    found: dict[str, Any] = {}
    for leaf in leaves(kind):
        *above, last = leaf.path
        place = found
        for step in above:
            place = place.setdefault(step, {})
        value = _named(values, leaf.name)
        if value is not MISSING:
            form = leaf.declared.form
            place[last] = form.read(value) if form else value
    return found


def drawn(kind: Callable[..., V], *values: object, **own: Any) -> V:
    """A dataclass of what these have: of several with a field's name, the first counts; `own`: what
    none has, or otherwise."""
    for each in dataclasses.fields(kind):  # type: ignore[arg-type]
        having = (it for it in values if hasattr(it, each.name))
        if each.name not in own and (value := next(having, None)) is not None:
            own[each.name] = getattr(value, each.name)
    return kind(**own)


def _named(values: Mapping[str, Any], name: str) -> Any:
    """What stands under a name, or in the object that its dots lead to; MISSING: nothing."""
    if name in values:
        return values[name]
    group, dot, inside = name.partition(".")
    within = values.get(group) if dot else None
    return _named(within, inside) if isinstance(within, Mapping) else MISSING


def grouped(values: Mapping[str, Any]) -> dict[str, Any]:
    """What stands under dotted names as objects: {"a.b.c": 1} as {"a": {"b": {"c": 1}}}."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        *groups, last = name.split(".")
        into = found
        for group in groups:
            into = into.setdefault(group, {}) if isinstance(into, dict) else into
        if not isinstance(into, dict) or last in into:
            whole = name.partition(".")[0]
            raise InvalidInput(f"{whole} is given whole, and in parts: give one of the two")
        into[last] = value
    return found


def check(value: Any, error: type[InvalidInput] = InvalidInput, *, within: str = "") -> None:
    """Raises the error for a number beyond its bounds; `within`: what its names begin with."""
    for leaf, least, most in _bounds(value.__class__):
        found = leaf.of(value)
        if found is not None and not (math.isfinite(found) and least <= found <= most):
            said = f"{least} or more" if most == math.inf else f"{least} to {most}"
            raise error(f"{within}{leaf.name} is {found}: it must be {said}")


@cache
def _bounds(kind: Hashable) -> tuple[tuple[Leaf, float, float], ...]:
    """Those of its own fields: what is inner has been checked."""
    return tuple(
        (leaf, leaf.declared.ge, math.inf if leaf.declared.le is None else leaf.declared.le)
        for leaf in leaves(kind)
        if leaf.declared.ge is not None and len(leaf.path) == 1
    )


def chosen(kind: type[E], name: str, text: str, error: type[InvalidInput] = InvalidInput) -> E:
    """The member that is named; raises the error, with those that there are."""
    try:
        return kind(text)
    except ValueError:
        raise error(f"{name} is {text!r}: it must be one of {', '.join(kind)}") from None


def _plain(leaf: Leaf, value: Any) -> Any:
    return leaf.declared.form.plain(value) if leaf.declared.form else _as_json(value)


def _as_json(value: Any) -> Any:
    match value:
        case Enum():
            return value.value
        case tuple():
            return [_as_json(each) for each in value]
        case Mapping():
            return {name: _as_json(each) for name, each in value.items()}
        case _:
            return flat(value) if is_dataclass(value) else value
