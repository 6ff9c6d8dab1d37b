"""A deployment's settings as users type them: KEY=VALUE, to what the admin API takes. Pure, but
for the file of a program."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from penstock.control.admin.refusals import place, refusal
from penstock.control.admin.rollout.deployment_settings import GROUPS, SettingsModel
from penstock.control.declared.fields import grouped, named
from penstock.control.declared.listing import json_of, typed
from penstock.control.errors import invalid_setting
from penstock.control.serving.program_text import without_program
from penstock.control.state.rollout.deployment import DeploymentSpec

M = TypeVar("M", bound=BaseModel)
CANARY = "canary"
DEGRADE = "degrade"


def parse_settings(words: Iterable[str]) -> dict[str, Any]:
    """The settings that are named, with values that they can have. Raises `invalid-setting`."""
    said, program = without_program(pairs(words, "setting", "max_queued=100"))
    special: dict[str, Callable[[str], Any]] = {CANARY: _canary, DEGRADE: _degrade}
    special |= dict.fromkeys(GROUPS, json_of)
    parsed = grouped(values_of(said, DeploymentSpec, **special)) | program
    return checked(SettingsModel, parsed).model_dump(exclude_unset=True)


def values_of(
    said: Mapping[str, str], *kinds: type, **special: Callable[[str], Any]
) -> dict[str, Any]:
    """Values of declared fields from their texts; `special`: of those that are typed otherwise. A
    name that there is not keeps its text, for who checks them to say so."""
    known: dict[str, Callable[[str], Any]] = {
        leaf.name: partial(typed, leaf) for leaf in named(*kinds)
    }
    return {name: (known | special).get(name, str)(text) for name, text in said.items()}


def pairs(words: Iterable[str], what: str, example: str) -> dict[str, str]:
    """What is named and its text; the last counts. Raises `invalid-setting`."""
    found = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not key or not equals:
            raise invalid_setting(f"{what} {word!r}: it must be key=value, such as {example}")
        found[key.replace("-", "_")] = text
    return found


def checked(kind: type[M], values: dict[str, Any]) -> M:
    """The values as the admin API takes them. Raises `invalid-setting`."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise invalid_setting("; ".join(_told(kind, error))) from error


def _told(kind: type[BaseModel], error: ValidationError) -> Iterator[str]:
    """What is wrong with each, and at the end what there is where a name is none."""
    unknown = False
    for each in error.errors():
        here = each["type"] == "extra_forbidden"
        unknown |= here
        message = "there is no such key" if here else refusal(each)
        yield f"{place(each['loc'])}: {message}"
    if unknown:
        yield f"there are {', '.join(_keys(kind))}"


def _keys(kind: type[BaseModel]) -> Iterator[str]:
    """What there is to set, with what is inside of objects by its own name."""
    for name, field in kind.model_fields.items():
        inside = field.annotation
        if isinstance(inside, type) and issubclass(inside, BaseModel):
            yield from (f"{name}.{key}" for key in _keys(inside))
        else:
            yield name


def _degrade(text: str) -> Any:
    """ "trim,fallback:cloud"; JSON where it is by reason; empty: nothing is tried."""
    if not text.startswith(("{", "[")):
        return [*filter(None, text.split(","))]
    try:
        return json.loads(text)
    except ValueError as error:
        raise invalid_setting(
            f"degrade is {text!r}, which is not JSON ({error}): it must be"
            ' trim,fallback:NAME,reject or such a list by reason, {"budget": ["fallback:NAME"]}'
        ) from error


def _canary(text: str) -> list[dict[str, Any]]:
    """ "next:50,other:10"; empty: no canary."""
    shares = []
    for part in filter(None, text.split(",")):
        name, colon, permille = part.rpartition(":")
        if not colon or not permille.isdecimal():
            raise invalid_setting(
                f"canary is {text!r}: it must be NAME:PERMILLE, such as mini-next:50, with commas"
                " between several"
            )
        shares.append({"deployment": name, "permille": int(permille)})
    return shares
