"""What pydantic found wrong in a request, as the client knows its own fields.

Pydantic tries every branch of a union and reports what each of them misses, by Python class names.
Here the branch that the client most likely meant is found from the errors' locations and types,
and the field is named by its path in the body alone: "messages.0.role". Pure: values in, value out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_MOST_READ: Final = 500  # a list of thousands of wrong values has an error for each
_MOST_TOLD: Final = 3
_MOST_WANTED: Final = 6
_MOST_LOOKED_AT: Final = 10_000  # values of a body, for the place of one
_SHOWN: Final = 60
_DISCRIMINATORS: Final = (("role",), ("type",))
_FIELD_NAME: Final = re.compile(r"[a-z_][a-zA-Z0-9_.$-]*")
# What pydantic calls types and wrappers that have no name of their own, as vLLM lists them.
_TYPES: Final = ("str", "int", "float", "bool", "bytes", "list", "dict", "set", "tuple", "none")
_BRANCHES: Final = frozenset(
    (
        *_TYPES,
        *("nullable", "json", "chain", "default", "callable", "function-after", "function-before"),
        *("function-plain", "function-wrap", "lax-or-strict", "json-or-python"),
        *("constrained-str", "constrained-int"),
    )
)
_WANTED: Final[Mapping[str, str]] = {
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "list_type": "a list",
    "iterable_type": "a list",
    "is_instance_of": "a list",
    "string_type": "a string",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
}
"""What a field should be, by pydantic's types of errors; of others it says so itself."""

_SHOULD_BE: Final = "Input should be "


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong: the field's path, empty where it is the body itself; a code; a sentence."""

    param: str
    code: str
    message: str


def read(errors: Sequence[Mapping[str, Any]], body: Any) -> Finding:
    """Pydantic's errors as one finding; `body` is what was parsed, None where it is not known."""
    start, value = _start(errors, body)
    located = [_Located.of(error, start, value) for error in errors[:_MOST_READ]]
    findings = [_of_site(site) for site in _sites(located)[:_MOST_TOLD]]
    if not findings:
        return Finding("", "invalid_value", "The request is not valid.")
    first = findings[0]
    return Finding(first.param, first.code, " ".join(one.message for one in findings))


def shown(value: Any) -> str:
    """A value in a message: as JSON where it is short, otherwise what it is."""
    if isinstance(value, dict):
        return f"an object with {len(value)} field{'' if len(value) == 1 else 's'}"
    if isinstance(value, list | tuple):
        return _shown_list(value)
    if isinstance(value, int) and abs(value) >= 10**_SHOWN:
        return "a number of more than 60 digits"
    try:
        text = json.dumps(value[:_SHOWN] if isinstance(value, str) else value)
    except (TypeError, ValueError):
        return "a value of another kind"
    cut = isinstance(value, str) and len(value) > _SHOWN
    return f'{text[:-1]}..." ({len(value)} characters)' if cut else text


def _shown_list(value: Sequence[Any]) -> str:
    plain = len(value) <= _MOST_TOLD and all(isinstance(one, str | int | float) for one in value)
    text = f"[{', '.join(map(shown, value))}]" if plain else ""
    return text if 0 < len(text) <= _SHOWN else f"a list of {len(value)}"


def _start(errors: Sequence[Mapping[str, Any]], body: Any) -> tuple[tuple[str, ...], Any]:
    """Where in the body the errors' locations begin, and what is there.

    Lists whose items pydantic looks at only when they are used report locations of their own.
    """
    location = _parts(errors[0]) if errors else ()
    if not isinstance(body, dict) or not location or not isinstance(location[0], int):
        return (), body
    wanted = errors[0].get("input")
    left: list[tuple[tuple[str, ...], Any]] = [((), body)]
    for _ in range(_MOST_LOOKED_AT):
        if not left:
            break
        path, value = left.pop(0)
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        left += [((*path, str(key)), one) for key, one in inside if isinstance(one, dict | list)]
        fits = isinstance(value, list) and location[0] < len(value)
        if fits and _led(value, location) == wanted:
            return path, value
    return (), None


def _led(value: Any, location: Iterable[Any]) -> Any:
    """What a location leads to from there; of its parts, names of types and a field that is
    missing lead nowhere."""
    for part in location:
        here = isinstance(value, list) and isinstance(part, int) and part < len(value)
        if here or (isinstance(value, dict) and part in value):
            value = value[part]
    return value


def _parts(error: Mapping[str, Any]) -> tuple[Any, ...]:
    location = tuple(error.get("loc", ()))
    return location[1:] if location[:1] == ("body",) else location


@dataclass(frozen=True, slots=True)
class _Located:
    """One of pydantic's errors, its location taken apart into fields and branches of unions."""

    path: tuple[str, ...]
    branch: tuple[str, ...]
    site: tuple[str, ...]  # the field at which the branches part
    kind: str
    error: Mapping[str, Any]

    @classmethod
    def of(cls, error: Mapping[str, Any], start: tuple[str, ...], value: Any) -> _Located:
        """The error, whose location begins in the body at `start`, where `value` is."""
        location = _parts(error)
        kind = str(error.get("type", ""))
        path = list(start)
        branch: list[str] = []
        site: int | None = None
        for at, part in enumerate(location):
            missing = kind == "missing" and at == len(location) - 1
            if missing or _is_field(part, value):
                path.append(str(part))
                value = _inside(value, part)
            else:
                branch.append(str(part))
                site = len(path) if site is None else site
        whole = tuple(path)
        return cls(whole, tuple(branch), whole if site is None else whole[:site], kind, error)

    def says_wrong_type(self) -> bool:
        """Whether the value had not the shape that this branch is for."""
        return self.kind.endswith("_type") or self.kind == "is_instance_of"

    def says_other_branch(self) -> bool:
        """Whether a field that tells branches apart names another one."""
        return self.kind == "literal_error" and self.path[-1:] in _DISCRIMINATORS


def _is_field(part: Any, value: Any) -> bool:
    """Whether a part of a location is in the body, rather than in the types that describe it."""
    if isinstance(part, int):
        return True
    if isinstance(value, dict) and part in value:
        return True
    unknown = value is None
    return unknown and part not in _BRANCHES and _FIELD_NAME.fullmatch(part) is not None


def _inside(value: Any, part: Any) -> Any:
    if isinstance(value, dict):
        return value.get(part)
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return value[part]
    return None


def _sites(located: Iterable[_Located]) -> list[list[_Located]]:
    """The errors by the field at which their branches part: one mistake each."""
    sites: dict[tuple[str, ...], list[_Located]] = {}
    for one in located:
        sites.setdefault(one.site, []).append(one)
    return list(sites.values())


def _of_site(found: list[_Located]) -> Finding:
    """The finding of the branch that was most likely meant.

    A type that is another branch's says that this one is not meant; a role may be the mistake.
    """
    fitting = _without_wrong_shape(found)
    branches: dict[tuple[str, ...], list[_Located]] = {}
    for one in fitting:
        branches.setdefault(one.branch, []).append(one)
    elsewhere = [branch for branch, own in branches.items() if _names_other(own)]
    meant = [
        own
        for branch, own in branches.items()
        if all(one.says_other_branch() and one.path[-1] == "role" for one in own)
        or not any(branch[: len(other)] == other for other in elsewhere)
    ]
    best = min(meant, key=_unlikely, default=[])
    if not best or _names_other(best):
        told = _told_apart(fitting)
        return _finding(told[0], told)
    same = [one for own in meant for one in own if one.path == best[0].path]
    return _finding(best[0], same)


def _told_apart(fitting: list[_Located]) -> list[_Located]:
    """The errors that say that the value is none of the branches; where pydantic does not name the
    branches, and one of them looked deeper, that one's."""
    other = [one for one in fitting if one.says_other_branch()]
    depth = len(other[0].path)
    deeper = [one for one in fitting if one.kind != "missing" and len(one.path) > depth]
    return deeper[:1] or [one for one in other if one.path == other[0].path]


def _without_wrong_shape(found: list[_Located]) -> list[_Located]:
    """Without branches that the value has not the shape of, where another one looked inside it."""
    looked_at = {one.path for one in found if not one.says_wrong_type()}
    looked_into = {one.path[:end] for one in found for end in range(len(one.path))}
    entered = looked_at | looked_into
    fitting = [one for one in found if not one.says_wrong_type() or one.path not in entered]
    return fitting or found


def _names_other(own: list[_Located]) -> bool:
    return any(one.says_other_branch() for one in own)


def _unlikely(own: list[_Located]) -> tuple[int, int, int]:
    """Orders branches: the fewest fields missing or of another branch, the deepest look, the
    fewest errors."""
    wrong = sum(one.kind == "missing" or one.says_other_branch() for one in own)
    return wrong, -max(len(one.path) for one in own), len(own)


def _finding(first: _Located, same: Iterable[_Located]) -> Finding:
    error = first.error
    param = ".".join(first.path)
    if first.kind == "json_invalid":
        return _not_json(error)
    if not first.path:
        return _not_an_object(first.kind, error)
    if first.kind == "missing":
        return Finding(param, "missing_required_parameter", f"'{param}' is missing.")
    said = list(dict.fromkeys(_sentence(one.error) for one in same if one.kind != "missing"))
    value = shown(error.get("input"))
    if all(one.startswith(_SHOULD_BE) for one in said):
        wanted = " or ".join(one.removeprefix(_SHOULD_BE) for one in said[:_MOST_WANTED])
        return Finding(param, _code(first.kind), f"'{param}' should be {wanted}; it is {value}.")
    text = said[0].rstrip(".")
    return Finding(param, _code(first.kind), f"'{param}' is {value}: {text}.")


def _not_json(error: Mapping[str, Any]) -> Finding:
    location = error.get("loc", ())
    where = location[-1] if location and isinstance(location[-1], int) else 0
    why = str(error.get("ctx", {}).get("error", "it cannot be read"))
    return Finding("", "invalid_json", f"The body is not valid JSON: {why}, at character {where}.")


def _not_an_object(kind: str, error: Mapping[str, Any]) -> Finding:
    if kind == "missing":
        return Finding("", "invalid_json", "The body is empty: send a JSON object.")
    if kind.endswith("_type"):
        value = shown(error.get("input"))
        return Finding("", "invalid_json", f"The body must be a JSON object; it is {value}.")
    return Finding("", "invalid_value", f"{_sentence(error).rstrip('.')}.")


def _sentence(error: Mapping[str, Any]) -> str:
    """What pydantic says; where a check of vLLM's failed, that check's own words."""
    if wanted := _WANTED.get(str(error.get("type"))):
        return _SHOULD_BE + wanted
    failed = error.get("ctx", {}).get("error")
    return str(failed) if isinstance(failed, Exception) else str(error.get("msg", "not valid"))


def _code(kind: str) -> str:
    if kind == "extra_forbidden":
        return "unknown_parameter"
    wrong = kind.endswith(("_type", "_parsing")) or kind in ("int_from_float", "is_instance_of")
    return "invalid_type" if wrong else "invalid_value"
