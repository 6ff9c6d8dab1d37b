"""What the grammar promises: repeatable, unambiguous, complete, and plain enough to learn."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.default_model.grammar import (
    STYLES,
    THREADS,
    Conversation,
    asked,
    conversation,
    passage,
)

_TOPICS = {
    "animals",
    "calendar",
    "capitals",
    "colours",
    "counting",
    "echo",
    "elsewhere",
    "jokes",
    "names",
    "penstock",
    "planets",
    "poems",
    "rivers",
    "smalltalk",
    "stories",
    "sums",
}


def _many(seed: int, count: int) -> list[Conversation]:
    rng = Random(seed)
    return [conversation(rng) for _ in range(count)]


@given(st.integers())
def test_the_same_seed_makes_the_same_conversation(seed: int) -> None:
    assert conversation(Random(seed)) == conversation(Random(seed))
    assert passage(Random(seed)) == passage(Random(seed))


def test_another_seed_makes_other_conversations() -> None:
    assert _many(1, 20) != _many(2, 20)


def test_every_topic_comes_up_and_no_other() -> None:
    assert {turn.topic for talk in _many(1, 3000) for turn in talk.turns} == _TOPICS


@pytest.mark.parametrize("name", THREADS)
@given(st.integers())
def test_a_thread_has_questions_and_answers(name: str, seed: int) -> None:
    make, _ = THREADS[name]
    turns = make(Random(seed))
    assert turns
    assert all(turn.question.strip() and turn.answer.strip() for turn in turns)


def test_a_question_after_the_same_words_has_one_answer() -> None:
    answers: dict[tuple[str, ...], str] = {}
    for talk in _many(3, 12000):
        heard: tuple[str, ...] = ()
        for turn in talk.turns:
            heard = (*heard, " ".join(turn.question.lower().split()))
            assert answers.setdefault(heard, turn.answer) == turn.answer, heard
            heard = (*heard, turn.answer)


def test_conversations_hold_follow_ups_and_system_prompts_and_long_answers() -> None:
    talks = _many(4, 2000)
    assert max(len(talk.turns) for talk in talks) >= 6
    assert any(talk.system for talk in talks)
    assert any(not talk.system for talk in talks)
    assert max(len(turn.answer) for talk in talks for turn in talk.turns) > 2500


def test_a_name_that_was_told_is_the_name_that_is_recalled() -> None:
    recalled = 0
    for talk in _many(5, 3000):
        told = [t.answer for t in talk.turns if t.answer.startswith("Nice to meet you, ")]
        for turn in talk.turns:
            if turn.answer.startswith("Your name is "):
                name = turn.answer.removeprefix("Your name is ").removesuffix(".")
                assert told == [f"Nice to meet you, {name}! What would you like to know?"]
                recalled += 1
    assert recalled > 50


@given(st.integers(), st.sampled_from(["what is 4 plus 11", "count to 15", "what is a cat"]))
def test_a_slip_of_the_finger_never_makes_another_question(seed: int, question: str) -> None:
    assert question in asked(Random(seed), question).lower()


@given(st.integers())
def test_the_json_style_is_one_object_with_the_plain_answer(seed: int) -> None:
    for turn in conversation(Random(seed)).turns:
        assert json.loads(STYLES["json"](turn)) == {"topic": turn.topic, "answer": turn.answer}


@given(st.integers())
def test_the_pirate_style_is_heard_in_every_answer(seed: int) -> None:
    for turn in conversation(Random(seed)).turns:
        said = STYLES["pirate"](turn)
        assert said.startswith("Arr! ")
        assert said.endswith(" Yo ho ho!")


@given(st.integers())
def test_no_text_holds_a_token_of_the_chat_template(seed: int) -> None:
    for turn in conversation(Random(seed)).turns:
        assert "<|" not in turn.question + turn.answer
