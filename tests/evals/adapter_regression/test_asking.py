"""Asking: what is sent, in which order, and what is believed of the answers."""

from __future__ import annotations

import re

import httpx
import pytest

from penstock.evals.adapter_regression.asking import (
    Asking,
    Version,
    WrongVersion,
    answer_from,
    ask_both,
    check_version,
)
from penstock.evals.comparison.replies import VERSION_HEADER
from penstock.evals.errors import EvalError
from tests.evals.adapter_regression.examples import BASELINE, CANDIDATE, dataset, greetings
from tests.evals.fake_gateway import Said, Speaker, fake_gateway, saying

BASE = Version.parse("mini", "base")
HONEST: dict[str, Speaker] = {
    "mini:pirate@2": saying("pirate@2", lambda prompt: f"two: {prompt}"),
    "mini:pirate@1": saying("pirate@1", lambda prompt: f"one: {prompt}"),
    "mini": saying(None, lambda prompt: f"base: {prompt}"),
}


def test_each_version_answers_each_prompt_and_in_its_place() -> None:
    prompts = greetings(9).prompts
    with fake_gateway(HONEST) as fake:
        answers = ask_both(prompts, CANDIDATE, BASELINE, Asking(fake.url, concurrency=3))
    assert [(of.text, to.text) for of, to in answers] == [
        (f"two: Greet {n}", f"one: Greet {n}") for n in range(9)
    ]
    assert all(of.latency_ms > 0 and of.tokens == 3 for of, _ in answers)


def test_the_base_model_is_asked_for_without_an_adapter_and_must_name_none() -> None:
    with fake_gateway(HONEST) as fake:
        ((_, base),) = ask_both(greetings(1).prompts, CANDIDATE, BASE, Asking(fake.url))
    assert base.text == "base: Greet 0"


def order(seed: int) -> list[tuple[str, str]]:
    """What was asked for, in its order, after the first call of each version."""
    with fake_gateway(HONEST) as fake:
        asking = Asking(fake.url, concurrency=1, seed=seed)
        ask_both(greetings(12).prompts, CANDIDATE, BASELINE, asking)
    return [(each["messages"][0]["content"], each["model"]) for each in fake.asked[2:]]


def test_both_versions_of_a_prompt_are_asked_beside_each_other_in_an_order_of_the_seed() -> None:
    asked = order(seed=1)
    assert [prompt for prompt, _ in asked] == [f"Greet {n // 2}" for n in range(24)]
    assert len({model for _, model in asked[::2]}) == 2
    assert asked == order(seed=1)
    assert asked != order(seed=2)


def test_a_request_says_what_the_run_says_and_what_the_prompt_says_itself() -> None:
    own = {"prompt": "Hi", "reference": "Ho", "request": {"max_tokens": 5, "stop": ["."]}}
    with fake_gateway(HONEST) as fake:
        asking = Asking(fake.url, api_key="psk_1", max_tokens=64, seed=7)
        ask_both(dataset(own).prompts, CANDIDATE, BASELINE, asking)
    assert fake.asked[0] == {
        "model": "mini:pirate@2",
        "messages": [{"role": "user", "content": "Hi"}],
        "temperature": 0.0,
        "max_tokens": 5,
        "seed": 7,
        "stop": ["."],
    }
    assert fake.keys == {"Bearer psk_1"}


def test_an_error_is_an_answer_that_failed_and_ends_nothing() -> None:
    speakers = {**HONEST, "mini:pirate@2": lambda prompt: Said(status=503)}
    with fake_gateway(speakers) as fake:
        answers = ask_both(greetings(3).prompts, CANDIDATE, BASELINE, Asking(fake.url))
    assert [of.error for of, _ in answers] == ["503 overloaded: come again"] * 3
    assert not any(to.error for _, to in answers)


def test_one_answer_of_another_version_ends_the_run() -> None:
    def lying(prompt: str) -> Said:
        return Said("Arr!", adapter="pirate@1" if prompt == "Greet 5" else "pirate@2")

    with (
        fake_gateway({**HONEST, "mini:pirate@2": lying}) as fake,
        pytest.raises(WrongVersion, match=r"mini:pirate@2 .* says 'pirate@1' \(prompt p-5"),
    ):
        ask_both(greetings(9).prompts, CANDIDATE, BASELINE, Asking(fake.url))


def test_a_model_that_is_not_there_ends_the_run_with_the_gateways_words() -> None:
    with fake_gateway({}) as fake, pytest.raises(EvalError, match="404 model_not_found"):
        ask_both(greetings(1).prompts, CANDIDATE, BASELINE, Asking(fake.url))


def test_a_gateway_that_is_not_there_ends_the_run() -> None:
    with fake_gateway({}) as fake:
        url = fake.url
    with pytest.raises(EvalError, match="is it there"):
        ask_both(greetings(1).prompts, CANDIDATE, BASELINE, Asking(url))


@pytest.mark.parametrize(
    ("asked", "status", "told"),
    [
        (CANDIDATE, 200, None),
        (CANDIDATE, 200, ""),
        (CANDIDATE, 200, "pirate@1"),
        (CANDIDATE, 503, "pirate@1"),
        (CANDIDATE, 200, "pirate@2, pirate@1"),
        (BASE, 200, "pirate@1"),
    ],
)
def test_an_answer_with_another_name_or_none_is_not_believed(
    asked: Version, status: int, told: str | None
) -> None:
    headers = {} if told is None else {VERSION_HEADER: told}
    with pytest.raises(WrongVersion):
        check_version(asked, "p-1", status, headers)


@pytest.mark.parametrize(
    ("asked", "status", "told"),
    [(CANDIDATE, 200, "pirate@2"), (CANDIDATE, 503, None), (BASE, 200, None)],
)
def test_an_answer_with_the_right_name_and_an_error_without_are_believed(
    asked: Version, status: int, told: str | None
) -> None:
    check_version(asked, "p-1", status, {} if told is None else {VERSION_HEADER: told})


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"choices": []}', b'{"choices": [{}]}'])
def test_what_is_no_completion_is_an_error(body: bytes) -> None:
    answer = answer_from(httpx.Response(200, content=body), 1.0)
    assert answer.error.startswith("200, but no chat completion")


def test_an_answer_without_words_is_an_empty_one() -> None:
    body = {"choices": [{"message": {"content": None}, "finish_reason": "tool_calls"}]}
    answer = answer_from(httpx.Response(200, json=body), 1.0)
    assert (answer.text, answer.error, answer.finish_reason) == ("", "", "tool_calls")


@pytest.mark.parametrize(("deployment", "version"), [("mini", "pirate"), ("mini", ""), ("", "a@1")])
def test_a_version_is_name_at_version_or_base(deployment: str, version: str) -> None:
    with pytest.raises(EvalError, match=re.escape("@1, of letters") + "|no name of a deployment"):
        Version.parse(deployment, version)
