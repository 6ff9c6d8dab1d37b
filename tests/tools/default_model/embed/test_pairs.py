"""What the sentences promise that penstock-embed learns from."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.default_model.embed import lexicon
from tools.default_model.embed.pairs import going_on, pair, past

_GROUPS = (
    lexicon.BEINGS,
    lexicon.THINGS,
    lexicon.DEEDS,
    lexicon.QUALITIES,
    lexicon.PLACES,
    lexicon.TIMES,
)


@given(st.integers())
def test_the_same_seed_makes_the_same_pair(seed: int) -> None:
    assert pair(Random(seed)) == pair(Random(seed))


def test_a_pair_is_two_sentences_of_one_meaning() -> None:
    rng = Random(1)
    pairs = [pair(rng) for _ in range(2000)]
    assert all(each.first.strip() and each.second.strip() for each in pairs)
    assert sum(each.first != each.second for each in pairs) > 1950
    assert len({each.key for each in pairs}) > 1000


@pytest.mark.parametrize("groups", _GROUPS)
def test_every_meaning_has_words_and_no_word_twice(groups: tuple[tuple[str, ...], ...]) -> None:
    for meaning in groups:
        assert len(set(meaning)) == len(meaning) >= 1
        assert all(word == word.strip() and word for word in meaning)


@pytest.mark.parametrize(
    ("verb", "was", "goes_on"),
    [
        ("repair", "repaired", "repairing"),
        ("buy", "bought", "buying"),
        ("change", "changed", "changing"),
        ("study", "studied", "studying"),
        ("call off", "called off", "calling off"),
        ("put up", "put up", "putting up"),
        ("see", "saw", "seeing"),
    ],
)
def test_verbs_have_their_forms(verb: str, was: str, goes_on: str) -> None:
    assert past(verb) == was
    assert going_on(verb) == goes_on
