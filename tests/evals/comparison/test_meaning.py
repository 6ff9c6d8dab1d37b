"""What is asked of an embedding deployment, and how its answer is read."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.evals.comparison import meaning
from penstock.evals.comparison.pair import Pair
from tests.evals.comparison.examples import failed, said

TEXTS = ("one", "two", "one")


def test_each_text_is_asked_for_once_and_found_for_all_who_said_it() -> None:
    body = meaning.question("embed", TEXTS)
    assert (body["model"], body["input"]) == ("embed", ["one", "two"])
    reply = {"data": [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}]}
    assert meaning.places(reply, TEXTS) == ([1, 0], [0, 1], [1, 0])


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"data": 7},
        {"data": [7]},
        {"data": [{"index": 0, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": "AAAA"}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [True]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": []}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [10**400]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [float("nan")]}]},
    ],
)
def test_a_reply_that_lacks_a_text_says_nothing(reply: Any) -> None:
    assert meaning.places(reply, TEXTS) is None


def test_nothing_is_asked_where_there_is_nothing_to_compare() -> None:
    one, two = said("one"), said("two")
    assert meaning.texts_of_pair(Pair("r", one, two)) == ()
    assert meaning.texts_of_pair(Pair("r", one, failed(), one)) == ()
    assert meaning.texts_of_pair(Pair("r", one, said(" "), one)) == ()
    assert meaning.texts_of_pair(Pair("r", one, two, one)) == TEXTS


def test_texts_are_asked_for_with_as_many_letters_as_models_read() -> None:
    long = said("a" * 9_000)
    texts = meaning.texts_of_pair(Pair("r", long, long, long))
    assert {len(each) <= meaning.MOST_LETTERS for each in texts} == {True}
