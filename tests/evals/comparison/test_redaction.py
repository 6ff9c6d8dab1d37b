"""What is taken out of requests before they are kept, and what is not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.evals.comparison.bad_check import BadCheck
from penstock.evals.comparison.redaction import Rules, redact, rules
from penstock.evals.comparison.secrets import SHIPPED

TEXTS = st.text(max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)
DIGITS = st.text("0123456789", min_size=11, max_size=18)


def luhn_digit(digits: str) -> str:
    """The check digit of a card, reckoned as ISO 7812 tells it."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return str(-total % 10)


def iban(country: str, account: str) -> str:
    """An IBAN with its check digits, as ISO 13616 tells it."""
    number = int("".join(str(int(each, 36)) for each in f"{account}{country}00"))
    return f"{country}{98 - number % 97:02}{account}"


def spaced(plain: str, gap: str) -> str:
    """In groups of four."""
    return gap.join(plain[at : at + 4] for at in range(0, len(plain), 4))


CARDS = st.tuples(st.sampled_from("3456"), DIGITS.map(lambda it: it[:17])).map(
    lambda it: "".join(it) + luhn_digit("".join(it))
)
PLANTED = st.one_of(
    st.sampled_from(["ann@example.org", "Ann.B+x@mail.example.co.uk"]),
    CARDS,
    CARDS.map(lambda it: spaced(it, " ")),
    CARDS.map(lambda it: spaced(it, "-")),
    st.text("0123456789", min_size=18, max_size=18).map(lambda it: iban("DE", it)),
    st.text("0123456789", min_size=18, max_size=18).map(lambda it: spaced(iban("DE", it), " ")),
    st.sampled_from(["+49 171 1234567", "0171 1234567", "(555) 123-4567", "123-45-6789"]),
    st.sampled_from(["sk-proj-abcdefghijklmnop1234", "ghp_" + "a1" * 18, "AKIAIOSFODNN7EXAMPLE"]),
    st.sampled_from(["Bearer abc.def-ghi.123", "eyJhbGciOiJIUzI1.eyJzdWIiOiIx.c2ln"]),
    st.sampled_from(["10.1.2.3", "192.168.100.200", "2001:db8::1", "fe80::1"]),
)


def still(seconds: float = 0.0) -> float:
    """A clock that stands."""
    return seconds


def told(body: Any, held: Rules | None = None) -> Any:
    """The body, redacted."""
    return redact(body, held or rules(), still).body


@given(PLANTED, st.sampled_from(["", "ab ", "to: ", '"', "(", "12 ", "\n"]), st.text(" .,;)\n"))
def test_what_is_planted_is_gone_wherever_it_stands(secret: str, before: str, after: str) -> None:
    text = f"{before}{secret}{after}"
    for body in (text, {"a": [text]}, {text: 1}, {"x": {"messages": [{"content": text}]}}):
        assert secret not in json.dumps(told(body))


@given(JSON)
def test_any_json_keeps_its_shape_and_what_was_given_stays_as_it_is(body: Any) -> None:
    before = repr(body)
    found = told(body)
    assert repr(body) == before
    assert same_shape(body, found)


def same_shape(one: Any, other: Any) -> bool:
    """Whether lists and objects are as long as they were, all the way down."""
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_shape, one, other))
    if isinstance(one, dict):
        return len(one) == len(other) and all(map(same_shape, one.values(), other.values()))
    return isinstance(other, str) or type(one) is type(other)


@pytest.mark.parametrize(
    "text",
    [
        "The bearer of good news came at 12:30:45 on 2026-01-31.",
        "f :: Int -> Int; std::vector<int> x; version 1.2.3",
        "4111 1111 1111 1112 is no card, DE00 9704 9044 9532 9130 90 no IBAN",
        "ask-me-anything-you-like, task-management-software",
        "10.000.000,00 EUR for 1000000 pieces",
    ],
)
def test_what_is_like_personal_data_and_is_none_stays(text: str) -> None:
    assert told(text) == text


def test_each_rule_says_what_it_found_and_the_model_keeps_its_name() -> None:
    body = {"model": "ann@example.org", "user": "ann@example.org", "n": 4111111111111111, "k": 7}
    found = redact(body, rules(), still)
    assert found.body == {
        "model": "ann@example.org",
        "user": "[e-mail address]",
        "n": "[payment card]",
        "k": 7,
    }
    assert found.found == {"e-mail address": 2, "payment card": 1}


def test_keys_that_look_alike_afterwards_are_all_kept() -> None:
    found = told({"a@x.org": 1, "b@x.org": 2, "c@x.org": 3})
    assert sorted(found.values()) == [1, 2, 3]


def test_the_operators_patterns_go_first() -> None:
    held = rules({"staff": r"(?i)emp-\d{6}"})
    assert held.names == ("staff", *SHIPPED)
    assert told("EMP-123456 at 10.1.2.3", held) == "[staff] at [IP address]"


def test_a_body_that_nests_without_end_is_looked_through() -> None:
    body: Any = "ann@example.org"
    for _ in range(5000):
        body = [body]
    found = told(body)
    while isinstance(found, list):
        (found,) = found
    assert found == "[e-mail address]"


def test_a_pattern_that_takes_too_long_withholds_what_is_left_of_the_body() -> None:
    held = rules({"slow": r"(?:(?:a|aa)+)+b!"}, seconds=0.05)
    found = redact(["short", "a" * 4000 + "b", "ann@example.org"], held, still).body
    assert found.count("[withheld: its patterns took too long]") >= 1
    assert "a" * 4000 + "b" not in found
    ticks = iter(range(100))
    late = redact(["one", "two"], rules({"x": "y"}), lambda: float(next(ticks)))
    assert late.body == ["[withheld: its patterns took too long]"] * 2


@pytest.mark.parametrize(
    ("own", "says"),
    [
        ({"x": "("}, "no regular expression"),
        ({"x": "a*"}, "finds the empty text"),
        ({"x": "a" * 501}, "1 to 500 characters"),
        ({"x": "((a{1000}){1000}){1000}"}, "counts come to more than 10,000"),
        ({"x": 3}, "must be a regular expression"),
        ({"[x]": "a"}, "is no name for a pattern"),
        ({"IBAN": "a"}, "is no name for a pattern"),
        ({f"n{at}": "a" for at in range(65)}, "more than 64 patterns"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused(own: Any, says: str) -> None:
    with pytest.raises(BadCheck, match=says):
        rules(own)


@given(st.text("(a|b)*+?{}0123456789,[]\\d^$.<=!", max_size=30), st.text("ab1 ", max_size=200))
def test_no_pattern_of_the_operator_breaks_or_hangs_it(pattern: str, text: str) -> None:
    try:
        held = rules({"own": pattern}, seconds=0.05)
    except BadCheck:
        return
    assert isinstance(told(text, held), str)
