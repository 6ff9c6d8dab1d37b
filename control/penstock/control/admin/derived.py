"""Models that follow from `state/`: what the API takes has names, types, bounds, defaults and texts
as they are declared there, what it shows is drawn from values by their names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING
from datetime import datetime
from enum import EnumType
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar, get_args, get_origin

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    create_model,
)

from penstock.control.admin.fields import Text
from penstock.control.declared.fields import PAIRS, Declared, Leaf, flat, grouped, leaves

M = TypeVar("M", bound="Derived")


class Model(BaseModel):
    """A model of the API. What checks and writes it is made when it is first used: a process uses a
    few of them, and to make all takes a good part of its start."""

    model_config = ConfigDict(defer_build=True)


class Shown(Model):
    """A model of what the head knows."""

    @classmethod
    def drawn(cls, *known: object, **own: Any) -> Self:
        """Each field from the first of these that has an attribute of its name; `own`: what none
        has, or otherwise."""
        found = {
            name: getattr(each, name)
            for each in reversed(known)
            for name in cls.model_fields
            if hasattr(each, name)
        }
        return cls.model_validate(found | own, from_attributes=True)


class Derived(Model):
    """A model that `derived` gives its fields; what it has no field for is refused."""

    model_config = ConfigDict(extra="forbid")

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @classmethod
    def showing(cls, value: object, **own: Any) -> Self:
        """As the API shows a value of such fields; `own`: what it does not say by itself."""
        told = grouped(flat(value))
        return cls.model_validate({n: told[n] for n in cls.model_fields if n in told} | own)


def derived(
    *kinds: type, without: Collection[str] = (), only: Collection[str] = (), **own: Any
) -> Callable[[type[M]], type[M]]:
    """Gives a model the fields of these dataclasses that it has not inherited, or `only` some;
    `own`: the type, or type and default, of one that the API takes in a form of its own."""

    def decorate(cls: type[M]) -> type[M]:
        passed = {*cls.model_fields, *without}
        found = dict(_named(leaf, own) for kind in kinds for leaf in leaves(kind))
        fields = {
            name: field
            for name, field in found.items()
            if name.partition(".")[0] not in passed and name in (only or found)
        }
        made: type[M] = create_model(
            cls.__name__, __base__=cls, __module__=cls.__module__, **fields
        )
        made.__doc__ = cls.__doc__
        return made

    return decorate


def _named(leaf: Leaf, own: Mapping[str, Any]) -> tuple[str, Any]:
    whole = leaf.path[0]
    if len(leaf.path) > 1 and whole in own:  # one field for all that is in there
        return whole, own[whole]
    return leaf.name, _field(leaf, own.get(leaf.name, _annotation(leaf.kind, leaf.declared)))


def _field(leaf: Leaf, kind: Any) -> Any:
    said = leaf.declared
    kind, default = kind if isinstance(kind, tuple) else (kind, _default(leaf))
    choices = said.choices or (leaf.kind if _is_named(leaf) else ())
    return kind, Field(
        **default,
        description=said.description or None,
        examples=list(said.examples) or None,
        max_length=said.most,
        json_schema_extra={"enum": [str(each) for each in choices]} if choices else None,
    )


def _is_named(leaf: Leaf) -> bool:
    """Whether it is one of several that the API takes as any text, which its form judges."""
    return isinstance(leaf.kind, EnumType) and leaf.declared.form is not None


def _default(leaf: Leaf) -> dict[str, Any]:
    if leaf.default is MISSING:
        return {}
    if leaf.default == ():
        return {"default_factory": dict if leaf.declared.form is PAIRS else list}
    return {"default": str(leaf.default) if _is_named(leaf) else leaf.default}


def _annotation(kind: Any, said: Declared) -> Any:
    """The type that the API takes."""
    if isinstance(kind, UnionType):
        others = [_annotation(each, said) for each in get_args(kind) if each is not NoneType]
        return others[0] | None
    bounds = Field(ge=said.ge, le=said.le)
    if said.form is PAIRS:
        return dict[Text, Text]
    if get_origin(kind) is tuple:
        return list[Text]
    if kind in (bool, datetime):
        return StrictBool if kind is bool else AwareDatetime
    if kind is int:
        return Annotated[StrictInt, bounds]
    if kind is float:
        return Annotated[float, Field(strict=True, ge=said.ge, le=said.le, allow_inf_nan=False)]
    return Text if said.form or not isinstance(kind, EnumType) else kind
