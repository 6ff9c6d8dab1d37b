"""What a deployment is asked to try it, and what an answer says."""

from __future__ import annotations

import json

import pytest

from penstock.control.errors import NotTestable
from penstock.control.state.trial import Said, question_for, said_in
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
    ],
)
def test_a_deployment_is_asked_for_what_it_serves(endpoints: tuple[str, ...], path: str) -> None:
    question = question_for("mini", endpoints)
    body = json.loads(question.body)
    assert (question.path, body["model"]) == (path, "mini")
    assert body.get("max_tokens") == (None if path == EMBEDDINGS else 16)
    assert bool(body.get("stream")) == (path != EMBEDDINGS)


def test_a_deployment_of_which_nothing_small_can_be_asked_says_what_it_serves() -> None:
    with pytest.raises(NotTestable, match="'mini' serves /pooling, /v1/rerank: a test asks"):
        question_for("mini", ("/v1/rerank", "/pooling"))


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
