"""What is asked for to score a text, and what is read from replies."""

from __future__ import annotations

import math
from typing import Any

import pytest

from penstock.evals.comparison.questions import Question
from penstock.evals.quantization_regression.texts import (
    NotScored,
    Tokens,
    logprobs_from,
    prompt_body,
    text_of,
    tokens_from,
)
from tests.evals.comparison.examples import called, failed, said

TOKENS = Tokens((1, 2), (3, 4))


def reply(*entries: Any) -> Any:
    """A completion whose prompt has these scores."""
    return {"choices": [{"prompt_logprobs": list(entries)}]}


def test_the_scores_of_the_answers_own_tokens_are_read_and_others_beside_them_are_not() -> None:
    told = reply(
        None,
        {"2": {"logprob": -1.0}},
        {"3": {"logprob": -0.25}, "9": {"logprob": -0.1}},
        {"4": {"logprob": -9999.0}},
    )
    assert logprobs_from(told, TOKENS) == (-0.25, -50.0)


@pytest.mark.parametrize(
    "told",
    [
        None,
        {},
        {"choices": []},
        reply(),
        reply(None, {"2": {"logprob": -1}}, {"3": {"logprob": -1}}),
        reply(None, {"2": {"logprob": -1}}, {"5": {"logprob": -1}}, {"4": {"logprob": -1}}),
        reply(None, {"2": {"logprob": -1}}, {"3": {"logprob": "x"}}, {"4": {"logprob": -1}}),
        reply(None, None, None, None),
    ],
)
def test_a_reply_without_the_scores_of_each_token_is_none(told: Any) -> None:
    with pytest.raises(NotScored):
        logprobs_from(told, TOKENS)


@pytest.mark.parametrize("told", [None, [], {"tokens": None}, {"tokens": [1, "2"]}, {"count": 3}])
def test_a_reply_without_tokens_is_none(told: Any) -> None:
    with pytest.raises(NotScored):
        tokens_from(told)


def test_a_prompt_is_rendered_with_what_its_template_sees() -> None:
    tools = [{"type": "function", "function": {"name": "time"}}]
    question = Question(
        "p", ({"role": "user", "content": "Hi"},), {"tools": tools, "max_tokens": 9}
    )
    assert prompt_body(question, "mini") == {
        "model": "mini",
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": tools,
        "add_generation_prompt": True,
    }


def test_only_an_answer_that_is_one_whole_text_can_be_scored() -> None:
    assert text_of(said("Hello")) == "Hello"
    assert text_of(failed()) == ""
    assert text_of(called("time", "{}")) == ""


def test_an_unlikely_token_is_as_good_as_impossible_and_no_more() -> None:
    low = logprobs_from(
        reply(None, None, {"3": {"logprob": -math.inf}}, {"4": {"logprob": -60}}), TOKENS
    )
    assert low == (-50.0, -50.0)
