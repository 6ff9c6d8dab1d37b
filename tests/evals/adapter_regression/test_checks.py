"""What each check says of an answer, and which checks are refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from penstock.evals.adapter_regression.checks import KINDS, Known, check
from penstock.evals.comparison.bad_check import BadCheck
from penstock.evals.comparison.patterns import REFUSALS

KNOWN = Known(("The Seine.", "It is the Seine."), tuple(map(re.compile, REFUSALS)))
PERSON = {
    "type": "object",
    "properties": {"name": {"$ref": "#/$defs/text"}},
    "required": ["name"],
    "$defs": {"text": {"type": "string"}},
}


def value(kind: str, told: object, text: str) -> float:
    """What the check says."""
    return check(kind, told, KNOWN).measure(text)


@pytest.mark.parametrize(
    ("kind", "told", "met", "missed"),
    [
        ("exact", True, " The Seine.\n", "the Seine."),
        ("exact", True, "It is the Seine.", "The Seine. It is."),
        ("contains", "Seine", "the Seine", "the Rhine"),
        ("contains", ["Seine", "Paris"], "Paris on Seine", "the Seine"),
        ("contains_any", ["Seine", "Paris"], "the Seine", "the Rhine"),
        ("not_contains", ["Seine", "Paris"], "the Rhine", "in Paris"),
        ("regex", r"^\d+$", "42", "42 or so"),
        ("similarity", 0.6, "the Seine!", "a red fox"),
        ("length", {"max_words": 2}, "two words", "these are three"),
        ("length", {"min_chars": 3, "max_chars": 4}, "four", "fives"),
        ("refusal", False, "The Seine.", "I'm sorry, but no."),
        ("refusal", True, "I can't help with that.", "The Seine."),
        ("json_schema", PERSON, '{"name": "Ada"}', '{"name": 1}'),
        ("json_schema", PERSON, ' {"name": "Ada"}\n', 'Sure: {"name": "Ada"}'),
    ],
)
def test_a_check_is_met_or_missed(kind: str, told: object, met: str, missed: str) -> None:
    assert (value(kind, told, met), value(kind, told, missed)) == (1, 0)


def test_every_kind_of_check_is_among_the_examples_above() -> None:
    marks = test_a_check_is_met_or_missed.pytestmark  # type: ignore[attr-defined]
    assert {example[0] for example in marks[0].args[1]} == set(KINDS)


def test_similarity_without_a_bound_is_a_degree() -> None:
    assert 0 < value("similarity", True, "It was the Seine.") < 1


@pytest.mark.parametrize(
    "answer",
    ["[" * 100_000, "9" * 5000, "NaN", "{", "", '{"name": "\\ud800"'],
    ids=["deep", "digits", "nan", "open", "empty", "cut"],
)
def test_what_is_no_json_is_no_valid_json_however_it_is_not(answer: str) -> None:
    assert value("json_schema", {}, answer) == 0


def test_a_schema_that_turns_in_a_circle_validates_nothing() -> None:
    assert value("json_schema", {"$ref": "#"}, "1") == 0


@pytest.mark.parametrize(
    ("kind", "told", "says"),
    [
        ("exactly", True, "there is no check 'exactly'"),
        ("exact", "The Seine.", "must be true"),
        ("contains", [], "a text or a list of texts"),
        ("contains_any", [""], "none of them empty"),
        ("not_contains", 3, "a text or a list of texts"),
        ("regex", "(", "no regular expression"),
        ("regex", 3, "must be a regular expression"),
        ("similarity", 1.5, "between 0 and 1"),
        ("similarity", False, "least similarity"),
        ("length", {"max_lines": 3}, "min_chars"),
        ("length", {"max_words": -1}, "0 or more"),
        ("length", {"min_words": 3, "max_words": 2}, "no answer could meet both"),
        ("refusal", "no", "must be true"),
        ("json_schema", True, "an object"),
        ("json_schema", {"type": "text"}, "is no JSON Schema"),
        ("json_schema", {"$ref": "https://schemas.example/a"}, "must hold all"),
        ("json_schema", {"$ref": "#/$defs/none"}, "does not hold"),
        ("json_schema", {"$defs": {"a": {"$id": "b"}}}, "refer to it by"),
    ],
)
def test_a_check_that_cannot_be_carried_out_is_refused(kind: str, told: Any, says: str) -> None:
    with pytest.raises(BadCheck, match=re.escape(says)):
        check(kind, told, KNOWN)


@pytest.mark.parametrize("kind", ["exact", "similarity"])
def test_what_compares_needs_a_reference(kind: str) -> None:
    with pytest.raises(BadCheck, match="needs a reference"):
        check(kind, True, Known((), ()))
