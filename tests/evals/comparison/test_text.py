"""Texts of models: what is alike, what differs, what may be shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.evals.comparison.text import differences, printable, similarity, whole

TEXTS = st.text(max_size=60)


@given(TEXTS, TEXTS)
def test_similarity_is_a_share_that_is_the_same_both_ways(one: str, other: str) -> None:
    assert 0 <= similarity(one, other) <= 1
    assert similarity(one, other) == similarity(other, one)


@given(TEXTS)
def test_a_text_is_like_itself(text: str) -> None:
    assert similarity(text, text) == 1


def test_similarity_counts_words_whatever_their_case_and_space() -> None:
    assert similarity("The Seine  is a River.", "the seine is a river .") == 1
    assert similarity("one two", "three four") == 0
    assert similarity("a b c d", "a b x y") == 0.5


@given(TEXTS, TEXTS)
def test_differences_keep_both_texts_whole(old: str, new: str) -> None:
    before, after = differences(old, new)
    assert "".join(text for text, _ in before) == old
    assert "".join(text for text, _ in after) == new


def test_differences_mark_what_the_other_lacks() -> None:
    before, after = differences("a blue sea", "a red sea")
    assert before == [("a ", False), ("blue", True), (" sea", False)]
    assert after == [("a ", False), ("red", True), (" sea", False)]


def test_what_would_not_show_or_turns_text_around_is_named() -> None:
    assert printable("a\u202eb\x00c\u200b\n\td\r\ne") == "a<U+202E>b<U+0000>c<U+200B>\n\td\ne"
    assert printable("\U0001f469\u200d\U0001f680") == "\U0001f469\u200d\U0001f680"


@given(st.text(st.characters(), max_size=40))
def test_a_text_can_be_written_whatever_a_model_said(text: str) -> None:
    assert whole(text).encode().decode() == whole(whole(text))


def test_half_a_pair_becomes_a_replacement_and_a_pair_its_character() -> None:
    assert whole("a\ud800b") == "a\ufffdb"
    assert whole("\ud83d\ude00") == "\U0001f600"
