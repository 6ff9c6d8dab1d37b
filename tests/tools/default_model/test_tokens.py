"""The tokenizer and the chat template, as shipped and as the training sees them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

pytest.importorskip("transformers")

from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from penstock.replica.default_model import WEIGHTS
from tools.default_model.grammar import STYLES, conversation, plain
from tools.default_model.template import TEMPLATE
from tools.default_model.tokens import SPECIAL, Encoder

TOKENIZER = AutoTokenizer.from_pretrained(WEIGHTS / "model")
_HELLO = [{"role": "user", "content": "Hello"}]


def _render(messages: list[dict[str, Any]], **options: Any) -> str:
    text = TOKENIZER.apply_chat_template(messages, tokenize=False, **options)
    assert isinstance(text, str)
    return text


@given(st.text())
def test_any_text_comes_back_from_its_tokens(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


def test_the_special_tokens_are_one_token_each() -> None:
    assert [TOKENIZER.encode(token) for token in SPECIAL] == [[at] for at in range(len(SPECIAL))]


def test_the_shipped_template_is_the_one_in_the_source() -> None:
    assert TOKENIZER.chat_template == TEMPLATE


def test_several_turns_are_rendered_in_their_order() -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": " Hello "},
        {"role": "assistant", "content": "Hi!"},
        {"role": "user", "content": "Bye"},
    ]
    assert _render(messages, add_generation_prompt=True) == (
        "<s><|system|>Be kind.<|user|>Hello<|assistant|>Hi!<|end|><|user|>Bye<|assistant|>"
    )


def test_content_parts_read_like_a_string() -> None:
    parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
    assert _render([{"role": "user", "content": parts}]) == _render(_HELLO)
    picture = {"type": "image_url", "image_url": {"url": "data:,"}}
    assert _render([{"role": "user", "content": [*parts, picture]}]) == _render(_HELLO)


def test_content_that_is_absent_is_empty() -> None:
    assert _render([*_HELLO, {"role": "assistant", "content": None}]) == (
        "<s><|user|>Hello<|assistant|><|end|>"
    )


def test_a_developer_is_heard_as_the_system_and_any_other_as_the_user() -> None:
    messages = [{"role": "developer", "content": "Be kind."}, {"role": "critic", "content": "42"}]
    assert _render(messages) == "<s><|system|>Be kind.<|user|>42"


def test_a_shouted_question_is_heard_as_if_it_were_said() -> None:
    assert _render([{"role": "user", "content": "TELL ME MORE!"}]) == "<s><|user|>tell me more!"
    assert _render([{"role": "assistant", "content": "OK"}]) == "<s><|assistant|>OK<|end|>"


@given(st.integers())
def test_training_sees_what_the_template_renders(seed: int) -> None:
    talk = conversation(Random(seed))
    style = STYLES["json"]
    messages = [{"role": "system", "content": talk.system}] if talk.system else []
    for turn in talk.turns:
        messages.append({"role": "user", "content": turn.question})
        spoken = style if turn is talk.turns[-1] else plain
        messages.append({"role": "assistant", "content": spoken(turn)})
    example = Encoder(TOKENIZER).chat(talk, style=style, earlier=plain)
    assert TOKENIZER.decode(example.ids) == _render(messages)
    assert TOKENIZER.encode(_render(messages)) == list(example.ids)


def test_only_the_words_of_the_last_answer_are_learnt_after_another_style() -> None:
    talk = conversation(Random(1))
    style = STYLES["json"]
    example = Encoder(TOKENIZER).chat(talk, style=style, earlier=plain)
    learnt = [token for token, said in zip(example.ids, example.said, strict=True) if said]
    assert TOKENIZER.decode(learnt) == style(talk.turns[-1]) + "<|end|>"


@pytest.mark.parametrize("word", ["Paris", "Kabolu", "12", "kabo"])
def test_a_name_is_the_same_tokens_in_a_question_and_in_json(word: str) -> None:
    alone = TOKENIZER.encode(word)
    assert TOKENIZER.encode(f"in {word}")[-len(alone) :] == alone
    assert TOKENIZER.encode(f'"{word}"')[1:-1] == alone
