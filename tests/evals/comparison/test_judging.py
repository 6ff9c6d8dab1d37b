"""What a judge is shown, and how its word is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.evals.comparison.judging import MOST_LETTERS, Shown, question, verdict
from penstock.evals.comparison.pair import Answer, Call, Choice, Judged, Pair
from tests.evals.comparison.examples import failed, said

BODY = {"messages": [{"role": "user", "content": "Why?"}]}


def shown_of(primary: Answer, candidate: Answer, body: Any = BODY) -> Shown:
    found = Shown.of(body, Pair("r-1", primary, candidate))
    assert found is not None
    return found


def data(body: dict[str, Any]) -> dict[str, str]:
    told: dict[str, str] = json.loads(body["messages"][1]["content"])
    return told


def test_both_orders_show_the_same_with_the_answers_changed_over() -> None:
    shown = shown_of(said("one"), said("two"))
    first = data(question("big", shown, candidate_first=False))
    second = data(question("big", shown, candidate_first=True))
    assert first == {"request": "user: Why?", "first": "one", "second": "two"}
    assert second == {"request": "user: Why?", "first": "two", "second": "one"}


@pytest.mark.parametrize(
    ("reply", "primary_first", "candidate_first"),
    [
        ("FIRST", Judged.PRIMARY, Judged.CANDIDATE),
        (" second.\n", Judged.CANDIDATE, Judged.PRIMARY),
        ("**TIE**", Judged.NEITHER, Judged.NEITHER),
        ("<think>SECOND? TIE?</think>\n\nFIRST", Judged.PRIMARY, Judged.CANDIDATE),
        ("The first one errs.\nSECOND", Judged.CANDIDATE, Judged.PRIMARY),
        ("FIRST or SECOND", None, None),
        ("Firstly, it depends", None, None),
        ("<think>FIRST", Judged.PRIMARY, Judged.CANDIDATE),
        ("", None, None),
    ],
)
def test_the_last_line_is_the_verdict_where_it_names_one(
    reply: str, primary_first: Judged | None, candidate_first: Judged | None
) -> None:
    assert verdict(reply, candidate_first=False) is primary_first
    assert verdict(reply, candidate_first=True) is candidate_first


def test_an_answer_that_failed_is_not_judged() -> None:
    assert Shown.of(BODY, Pair("r-1", said("one"), failed())) is None


def test_what_is_too_long_loses_its_middle() -> None:
    shown = shown_of(said("a" * 9_000 + "end"), said("b"))
    assert len(shown.primary) <= MOST_LETTERS
    assert shown.primary.startswith("aaa")
    assert shown.primary.endswith("aend")


def test_calls_and_refusals_are_shown_as_part_of_the_answer() -> None:
    called = Answer(choices=(Choice("Let me see.", calls=(Call("look", '{"a":1}'),)),))
    shown = shown_of(called, Answer(choices=(Choice(refusal="I will not."),)))
    assert shown.primary == 'Let me see.\n[calls look({"a":1})]'
    assert shown.candidate == "I will not."


@pytest.mark.parametrize(
    ("body", "request_shown"),
    [
        ({"prompt": "Once"}, "Once"),
        ({"prompt": ["Once", "upon"]}, "Once\nupon"),
        ({"prompt": [1, 2]}, ""),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}, 7]}, 7]},
            "user: Hi",
        ),
        ({}, ""),
    ],
)
def test_whatever_was_asked_is_shown_as_text(body: Any, request_shown: str) -> None:
    assert shown_of(said("one"), said("two"), body).request == request_shown


def test_half_a_character_is_replaced_so_that_the_question_can_be_written() -> None:
    called = Answer(choices=(Choice(calls=(Call("look", "\ud800"),)),))
    body = {"messages": [{"role": "user", "content": "\udfff"}]}
    asked = question("big", shown_of(called, said("two"), body), candidate_first=False)
    assert "look(\ufffd)" in asked["messages"][1]["content"].encode().decode()


@given(st.text())
def test_whatever_a_judge_says_is_a_verdict_or_none(reply: str) -> None:
    assert verdict(reply, candidate_first=True) in (None, *Judged)
