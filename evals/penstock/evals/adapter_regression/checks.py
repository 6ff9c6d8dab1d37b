"""What can be checked of an answer: each kind a function in a table. Pure.

A check measures a text from 0 (missed) to 1 (met). All but `similarity` without a bound say one of
the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.evals.comparison.bad_check import BadCheck
from penstock.evals.comparison.patterns import compiled, found
from penstock.evals.comparison.schemas import validator
from penstock.evals.comparison.text import similarity

Measure = Callable[[str], float]


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
    return lambda text: float(found(text, known.refusals) == told)


def _json_schema(told: object, known: Known) -> Measure:
    valid = validator(told)
    return lambda text: float(valid(text))


def most_similar(text: str, references: Sequence[str]) -> float:
    """The similarity to the reference that is nearest."""
    return max(similarity(text, each) for each in references)


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
