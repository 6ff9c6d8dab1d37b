"""What vLLM has beside the OpenAI API, asked for through the openai SDK as its users do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.clients.served import EMBEDDER, MODEL, Served

pytestmark = pytest.mark.vllm

CLASSIFIER = "penstock-classifier"
# Nothing that comes with Penstock classifies: two classes, with weights by chance.
CLASSIFIER_SPEC = {
    "model": "penstock-mini",
    "engine_args": {
        "runner": "pooling",
        "convert": "classify",
        "hf_overrides": '{"num_labels": 2}',
        "load_format": "dummy",
        "max_model_len": "256",
    },
}
DOCUMENTS = ["The bread is fresh.", "A cat sleeps on the sofa.", "He paid the bill."]


@pytest.fixture(scope="module")
def classifier(served: Served) -> Iterator[str]:
    """A deployment that classifies, for this file alone."""
    served.deploy(CLASSIFIER, CLASSIFIER_SPEC)
    served.ready_replica(CLASSIFIER)
    yield CLASSIFIER
    served.take_down(CLASSIFIER)


def _post(client: Any, path: str, **body: Any) -> Any:
    return client.post(path, body=body, cast_to=object)


def test_pairs_are_scored_as_their_documents_are_ranked(client: Any) -> None:
    query = "The cat is asleep."
    scored = _post(client, "/score", model=EMBEDDER, queries=query, documents=DOCUMENTS)
    ranked = _post(client, "/rerank", model=EMBEDDER, query=query, documents=DOCUMENTS, top_n=2)
    scores = [one["score"] for one in scored["data"]]
    assert [one["index"] for one in scored["data"]] == [0, 1, 2]
    assert [one["relevance_score"] for one in ranked["results"]] == pytest.approx(
        sorted(scores, reverse=True)[:2]
    )
    assert ranked["results"][0]["document"]["text"] == DOCUMENTS[1]


def test_the_pooler_gives_the_vector_that_an_embedding_is(client: Any) -> None:
    pooled = _post(client, "/pooling", model=EMBEDDER, input="The cat sleeps.", task="embed")
    embedded = client.embeddings.create(model=EMBEDDER, input="The cat sleeps.")
    assert pooled["data"][0]["data"] == pytest.approx(embedded.data[0].embedding, abs=1e-6)


@pytest.mark.parametrize("model", [MODEL, EMBEDDER])
def test_tokens_become_the_text_again(client: Any, model: str) -> None:
    tokens = _post(client, "/tokenize", model=model, prompt="a cat sleeps")["tokens"]
    text = _post(client, "/detokenize", model=model, tokens=tokens)["prompt"]
    assert "a cat sleeps" in text


def test_texts_are_classified(client: Any, classifier: str) -> None:
    answer = _post(client, "/classify", model=classifier, input=DOCUMENTS)
    assert answer["model"] == classifier
    assert [one["num_classes"] for one in answer["data"]] == [2, 2, 2]
    for one in answer["data"]:
        assert sum(one["probs"]) == pytest.approx(1, abs=1e-3)


def test_a_classifier_says_what_it_serves(client: Any, classifier: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        _post(client, "/score", model=classifier, queries="a", documents="b")
    assert caught.value.code == "unsupported_endpoint"
    with pytest.raises(openai.BadRequestError) as chat:
        client.chat.completions.create(
            model=classifier, messages=[{"role": "user", "content": "Hello"}]
        )
    assert chat.value.code == "unsupported_endpoint"
    assert "/classify" in chat.value.message


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("/score", {"queries": "a"}),
        ("/rerank", {"query": "a", "documents": []}),
        ("/pooling", {"input": []}),
        ("/tokenize", {"prompt": 7}),
        ("/detokenize", {"tokens": [-1]}),
    ],
)
def test_a_wrong_request_is_the_clients_fault(
    client: Any, path: str, wrong: dict[str, Any]
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        _post(client, path, model=EMBEDDER, **wrong)
    assert caught.value.type == "invalid_request_error"
    assert caught.value.message
