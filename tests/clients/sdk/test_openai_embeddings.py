"""Embeddings through the openai SDK, which asks for base64 unless it is told otherwise."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from tests.clients.questions import TOO_LONG
from tests.clients.served import EMBEDDER, LOADING, MODEL

pytestmark = pytest.mark.vllm

SENTENCES = ["The cat sleeps.", "A gateway passes requests on."]


def test_every_sentence_gets_a_vector_whichever_way_it_travels(client: Any) -> None:
    as_base64 = client.embeddings.create(model=EMBEDDER, input=SENTENCES)
    as_floats = client.embeddings.create(model=EMBEDDER, input=SENTENCES, encoding_format="float")
    assert [each.index for each in as_base64.data] == [0, 1]
    assert as_base64.model == EMBEDDER
    assert as_base64.usage.prompt_tokens > 0
    for one, other in zip(as_base64.data, as_floats.data, strict=True):
        assert one.embedding == pytest.approx(other.embedding, abs=1e-6)
        assert sum(x * x for x in one.embedding) == pytest.approx(1, abs=1e-3)


async def test_the_async_client_embeds(async_client: Any) -> None:
    reply = await async_client.embeddings.create(model=EMBEDDER, input="The cat sleeps.")
    assert len(reply.data[0].embedding) > 8


def test_a_chat_model_does_not_embed_and_says_what_it_serves(client: Any) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.embeddings.create(model=MODEL, input="Hello")
    assert caught.value.code == "unsupported_endpoint"
    assert caught.value.param == "model"
    assert "/v1/chat/completions" in caught.value.message


def test_an_embedder_does_not_chat_and_says_what_it_serves(client: Any) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(
            model=EMBEDDER, messages=[{"role": "user", "content": "Hello"}]
        )
    assert caught.value.code == "unsupported_endpoint"
    assert "/v1/embeddings" in caught.value.message


def test_errors_are_told_as_for_every_other_endpoint(client: Any) -> None:
    with pytest.raises(openai.NotFoundError) as unknown:
        client.embeddings.create(model="gpt-9", input="Hello")
    assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as wrong:
        client.embeddings.create(model=EMBEDDER, input="Hello", extra_body={"dimensions": "many"})
    assert wrong.value.param == "dimensions"
    with pytest.raises(openai.BadRequestError) as long:
        client.embeddings.create(model=EMBEDDER, input=TOO_LONG)
    assert long.value.code == "context_length_exceeded"
    with pytest.raises(openai.InternalServerError) as loading:
        client.embeddings.create(model=LOADING, input="Hello")
    assert int(loading.value.response.headers["retry-after"]) >= 1
