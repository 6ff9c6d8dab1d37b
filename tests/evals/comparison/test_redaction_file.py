"""What an operator has taken out, as a file says it; keys are taken out wherever they stand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.evals.comparison.bad_check import BadCheck
from penstock.evals.comparison.redaction import redact
from penstock.evals.comparison.redaction_file import rules_of

FILE = json.dumps({"keys": ["Password"], "patterns": {"ticket": r"TCK-\d+"}})


def redacted(body: Any) -> Any:
    return redact(body, rules_of(FILE), lambda: 0.0).body


def test_what_stands_under_a_key_is_taken_out_whatever_it_is() -> None:
    body = {"password": {"old": "rosebud"}, "of": [{"PASSWORD": 7}], "pass": "word"}
    assert redacted(body) == {
        "password": "[key password]",
        "of": [{"PASSWORD": "[key password]"}],
        "pass": "word",
    }


def test_a_key_is_found_in_json_within_a_text() -> None:
    calls = {"arguments": json.dumps({"user": "x", "password": "rosebud"})}
    within = json.dumps({"deeper": json.dumps(calls)})
    assert "rosebud" not in json.dumps(redacted({"text": within}))
    assert json.loads(redacted(calls)["arguments"]) == {"user": "x", "password": "[key password]"}


@pytest.mark.parametrize("text", ['{"a": 1,  "b": 2}', "{no json", "[" * 100_000])
def test_a_text_without_such_a_key_stays_as_it_is_or_is_withheld(text: str) -> None:
    assert redacted(text) in (text, "[withheld: it nests too deeply]")


def test_patterns_of_the_file_are_looked_for_beside_those_that_ship() -> None:
    assert redacted("TCK-12 of ada@example.org") == "[ticket] of [e-mail address]"
    assert rules_of(FILE).names[:2] == ("key password", "ticket")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("[", "is no JSON"),
        ("[]", "it must be an object"),
        ('{"key": []}', "there is no field 'key': there are keys, patterns"),
        ('{"keys": "password"}', "keys: is 'password', must be a list of names"),
        ('{"keys": [""]}', "keys: '' is no key"),
        ('{"patterns": ["x"]}', "patterns: is ['x'], must be an object"),
        ('{"patterns": {"x": "("}}', "patterns: x: '(' is no regular expression"),
        ('{"patterns": {"x": "a*"}}', "patterns: x: 'a*' finds the empty text"),
        ('{"patterns": {"x": 7}}', "patterns: x: must be a regular expression"),
    ],
)
def test_a_wrong_file_is_told_by_field_and_value(told: str, words: str) -> None:
    with pytest.raises(BadCheck) as error:
        rules_of(told)
    assert words in str(error.value)
