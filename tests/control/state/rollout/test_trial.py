"""What a deployment is asked to try it, and what an answer says."""

from __future__ import annotations

import json

import pytest

from penstock.control.errors import Code
from penstock.control.state.rollout.trial import Said, proof_for, question_for, said_in
from tests.fakes.control_errors import raises_code
from tests.fakes.fake_replica import DONE, delta, event, last_delta

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
EMBEDDINGS = "/v1/embeddings"


@pytest.mark.parametrize(
    ("endpoints", "path"),
    [
        ((), CHAT),
        ((EMBEDDINGS, COMPLETIONS, CHAT), CHAT),
        ((COMPLETIONS, "/tokenize"), COMPLETIONS),
        ((EMBEDDINGS, "/pooling"), EMBEDDINGS),
        (("/v1/rerank", "/tokenize"), "/v1/rerank"),
    ],
)
def test_a_deployment_is_asked_for_what_it_serves(endpoints: tuple[str, ...], path: str) -> None:
    question = question_for("mini", endpoints)
    body = json.loads(question.body)
    generates = path in (CHAT, COMPLETIONS)
    assert (question.path, body["model"]) == (path, "mini")
    assert body.get("max_tokens") == (16 if generates else None)
    assert bool(body.get("stream")) == generates


@pytest.mark.parametrize(
    ("endpoints", "path"),
    [
        ((CHAT, COMPLETIONS, "/tokenize"), COMPLETIONS),
        ((CHAT,), CHAT),
        ((EMBEDDINGS, "/tokenize"), EMBEDDINGS),
        (("/classify", "/tokenize"), "/classify"),
        (("/v1/score", "/v1/rerank"), "/v1/score"),
        (("/pooling",), "/pooling"),
    ],
)
def test_a_model_is_proved_by_the_smallest_request_of_its_own_kind(
    endpoints: tuple[str, ...], path: str
) -> None:
    question = proof_for("mini", endpoints)
    assert question is not None
    body = json.loads(question.body)
    assert (question.path, body["model"]) == (path, "mini")
    assert body.get("max_tokens") == (1 if path in (CHAT, COMPLETIONS) else None)
    assert "stream" not in body


def test_a_model_of_an_unknown_kind_is_not_asked_for_a_proof() -> None:
    assert proof_for("mini", ("/tokenize",)) is None


def test_a_deployment_of_which_nothing_small_can_be_asked_says_what_it_serves() -> None:
    with raises_code(Code.NOT_TESTABLE, match="'mini' serves /detokenize, /tokenize: a test asks"):
        question_for("mini", ("/tokenize", "/detokenize"))


def test_the_words_of_a_stream_are_put_together() -> None:
    usage = event({"choices": [], "usage": {"prompt_tokens": 3}})
    chat = delta("Hel") + b": still there\n\n" + delta("lo") + last_delta() + usage + DONE
    assert said_in(CHAT, chat) == Said("Hello", "stop")
    choices = [{"text": "Hel"}, {"text": "other"}], [{"text": "lo", "finish_reason": "length"}]
    completion = b"".join(event({"choices": each}) for each in choices)
    assert said_in(COMPLETIONS, completion + DONE) == Said("Hello", "length")


def test_a_vector_is_told_by_its_length() -> None:
    body = json.dumps({"data": [{"embedding": [0.5, 0.25, 0.0]}]}).encode()
    assert said_in(EMBEDDINGS, body) == Said(dimensions=3)


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"data: {\n\n", b"data: 7\n\n", b'data: {"choices": [7, {"delta": 7}]}']
)
def test_an_answer_that_is_none_says_nothing(body: bytes) -> None:
    assert said_in(CHAT, body) == Said()
    assert said_in(EMBEDDINGS, body) == Said()
