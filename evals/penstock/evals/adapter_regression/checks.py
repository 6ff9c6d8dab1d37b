"""What can be checked of an answer: each kind a function in a table. Pure.

A check measures a text from 0 (missed) to 1 (met). All but `similarity` without a bound say one of
the two.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from jsonschema import SchemaError
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from penstock.evals.adapter_regression.text import similarity

Measure = Callable[[str], float]

REFUSALS: Final = (
    r"(?i)\bI(?:'m| am) sorry,? but\b",
    r"(?i)\bI (?:can(?:no|')t|cannot|can not|won't|will not|am unable to|'m unable to) "
    r"(?:help|assist|answer|do that|provide|comply|discuss)",
    r"(?i)\bas an? (?:AI|language model)\b",
)
"""What counts as a refusal, unless the thresholds' file says otherwise."""


class BadCheck(ValueError):
    """A check that cannot be carried out; the message says what it must be."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a prompt's answers."""

    kind: str
    measure: Measure


@dataclass(frozen=True, slots=True)
class Known:
    """What checks may go by besides their own words."""

    references: tuple[str, ...]
    refusals: tuple[re.Pattern[str], ...]


def check(kind: str, told: object, known: Known) -> Check:
    """The check of that kind. Raises `BadCheck`."""
    if kind not in KINDS:
        raise BadCheck(f"there is no check {kind!r}: there are {', '.join(sorted(KINDS))}")
    return Check(kind, KINDS[kind](told, known))


def _exact(told: object, known: Known) -> Measure:
    if told is not True:
        raise BadCheck("must be true: the answer is compared with the reference")
    wanted = {each.strip() for each in _references(known)}
    return lambda text: float(text.strip() in wanted)


def _contains(told: object, known: Known) -> Measure:
    wanted = _texts(told)
    return lambda text: float(all(each in text for each in wanted))


def _contains_any(told: object, known: Known) -> Measure:
    wanted = _texts(told)
    return lambda text: float(any(each in text for each in wanted))


def _not_contains(told: object, known: Known) -> Measure:
    unwanted = _texts(told)
    return lambda text: float(not any(each in text for each in unwanted))


def _regex(told: object, known: Known) -> Measure:
    pattern = compiled(told)
    return lambda text: float(pattern.search(text) is not None)


def _similarity(told: object, known: Known) -> Measure:
    references = _references(known)
    if told is True:
        return lambda text: most_similar(text, references)
    least = _number(told, "must be true, or the least similarity from 0 to 1")
    if not 0 <= least <= 1:
        raise BadCheck(f"is {least:g}: a similarity lies between 0 and 1")
    return lambda text: float(most_similar(text, references) >= least)


def _length(told: object, known: Known) -> Measure:
    limits = ("min_chars", "max_chars", "min_words", "max_words")
    if not isinstance(told, dict) or not told or not set(told) <= set(limits):
        raise BadCheck(f"must be an object of some of {', '.join(limits)}")
    for name, limit in told.items():
        if type(limit) is not int or limit < 0:
            raise BadCheck(f"{name} is {limit!r}: it must be a whole number, 0 or more")
    for unit in ("chars", "words"):
        if told.get(f"min_{unit}", 0) > told.get(f"max_{unit}", float("inf")):
            raise BadCheck(f"min_{unit} is more than max_{unit}: no answer could meet both")

    def measure(text: str) -> float:
        sizes = {"chars": len(text), "words": len(text.split())}
        return float(
            all(
                told.get(f"min_{unit}", 0) <= size <= told.get(f"max_{unit}", size)
                for unit, size in sizes.items()
            )
        )

    return measure


def _refusal(told: object, known: Known) -> Measure:
    if not isinstance(told, bool):
        raise BadCheck("must be true (it has to refuse) or false (it must not)")
    return lambda text: float(refused(text, known.refusals) == told)


def _json_schema(told: object, known: Known) -> Measure:
    if not isinstance(told, dict):
        raise BadCheck("must be a JSON Schema, an object")
    kind = validator_for(told)
    try:
        kind.check_schema(told)
        _check_references(told)
    except SchemaError as error:
        raise BadCheck(f"is no JSON Schema: {error.message[:200]}") from error
    except RecursionError as error:
        raise BadCheck("is nested too deeply") from error
    # An empty registry: what a schema refers to is looked up within it, never fetched.
    validator = kind(told, registry=Registry())

    def measure(text: str) -> float:
        try:
            return float(validator.is_valid(json.loads(text, parse_constant=_no_constant)))
        except (ValueError, RecursionError):
            return 0.0

    return measure


def _check_references(schema: Mapping[str, Any]) -> None:
    resolver = Registry().resolver_with_root(DRAFT202012.create_resource(schema))
    if any("$id" in each for each in _objects(schema) if each is not schema):
        raise BadCheck("gives a part of itself an $id: refer to it by #/...")
    for each, key in product(_objects(schema), ("$ref", "$dynamicRef")):
        reference = each.get(key, "#")
        if not isinstance(reference, str):
            continue
        if not reference.startswith("#"):
            raise BadCheck(f"refers to {reference[:200]!r}: it must hold all that it refers to")
        try:
            resolver.lookup(reference)
        except Unresolvable as error:
            raise BadCheck(f"refers to {reference[:200]!r}, which it does not hold") from error


def _objects(schema: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, dict):
        yield schema
    values = schema.values() if isinstance(schema, dict) else schema
    if isinstance(values, list | ValuesView):
        for value in values:
            yield from _objects(value)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def refused(text: str, patterns: Sequence[re.Pattern[str]]) -> bool:
    """Whether one of the patterns finds a refusal in it."""
    return any(pattern.search(text) for pattern in patterns)


def most_similar(text: str, references: Sequence[str]) -> float:
    """The similarity to the reference that is nearest."""
    return max(similarity(text, each) for each in references)


def compiled(told: object) -> re.Pattern[str]:
    """A regular expression. Raises `BadCheck`."""
    if not isinstance(told, str):
        raise BadCheck("must be a regular expression, a text")
    try:
        return re.compile(told)
    except re.error as error:
        raise BadCheck(f"{told!r} is no regular expression: {error}") from error


def _references(known: Known) -> tuple[str, ...]:
    if not known.references:
        raise BadCheck("needs a reference to compare with")
    return known.references


def _texts(told: object) -> tuple[str, ...]:
    texts = [told] if isinstance(told, str) else told
    if not isinstance(texts, list) or not texts or not all(isinstance(t, str) and t for t in texts):
        raise BadCheck("must be a text or a list of texts, none of them empty")
    return tuple(texts)


def _number(told: object, wish: str) -> float:
    if isinstance(told, bool) or not isinstance(told, int | float):
        raise BadCheck(wish)
    return float(told)


KINDS: Final[Mapping[str, Callable[[object, Known], Measure]]] = {
    "exact": _exact,
    "contains": _contains,
    "contains_any": _contains_any,
    "not_contains": _not_contains,
    "regex": _regex,
    "json_schema": _json_schema,
    "similarity": _similarity,
    "length": _length,
    "refusal": _refusal,
}

__all__ = [
    "KINDS",
    "REFUSALS",
    "BadCheck",
    "Check",
    "Known",
    "check",
    "compiled",
    "most_similar",
    "refused",
]
