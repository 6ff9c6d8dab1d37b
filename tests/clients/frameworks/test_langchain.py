"""LangChain's ChatOpenAI and OpenAIEmbeddings, over chat completions and over Responses."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

from tests.clients.questions import QUESTION, TOO_LONG
from tests.clients.served import EMBEDDER, LOADING, MODEL, Served

# The libraries warn of each other: not our concern here.
pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]

over_both = pytest.mark.parametrize("responses", [False, True], ids=["chat", "responses"])


class Topic(BaseModel):
    """What a structured answer must look like."""

    topic: str
    known: bool


def chat_model(served: Served, *, responses: bool, **more: Any) -> ChatOpenAI:
    """LangChain's model as its users set it up."""
    settings: dict[str, Any] = {
        "base_url": served.base_url,
        "api_key": "none",
        "model": MODEL,
        "temperature": 0,
        "max_retries": 0,
        "max_tokens": 200,
        "use_responses_api": responses,
        **more,
    }
    return ChatOpenAI(**settings)


@over_both
def test_invoke_and_stream_say_the_same(served: Served, responses: bool) -> None:
    model = chat_model(served, responses=responses)
    whole = model.invoke(QUESTION)
    assert whole.text
    assert "".join(chunk.text for chunk in model.stream(QUESTION)) == whole.text
    assert whole.usage_metadata is not None
    assert whole.usage_metadata["output_tokens"] > 0


@over_both
async def test_it_streams_for_asyncio_too(served: Served, responses: bool) -> None:
    chunks = [c async for c in chat_model(served, responses=responses).astream(QUESTION)]
    assert "".join(chunk.text for chunk in chunks)


@over_both
def test_structured_output_is_of_the_asked_class(served: Served, responses: bool) -> None:
    model = chat_model(served, responses=responses).with_structured_output(
        Topic, method="json_schema"
    )
    assert isinstance(model.invoke("What is a gateway? Answer in JSON."), Topic)


def test_documents_and_queries_are_embedded(served: Served) -> None:
    # Unless it is told not to, it counts tokens by itself, with a tokenizer that it downloads.
    embeddings = OpenAIEmbeddings(
        base_url=served.base_url,
        api_key="none",
        model=EMBEDDER,
        check_embedding_ctx_length=False,
    )
    documents = embeddings.embed_documents(["The cat sleeps.", "A gateway passes requests on."])
    assert len(documents) == 2
    assert embeddings.embed_query("The cat sleeps.") == pytest.approx(documents[0], abs=1e-4)


@over_both
def test_errors_are_those_of_the_openai_sdk(served: Served, responses: bool) -> None:
    with pytest.raises(openai.NotFoundError):
        chat_model(served, responses=responses, model="gpt-9").invoke("Hello")
    with pytest.raises(openai.BadRequestError):
        chat_model(served, responses=responses, top_p=7).invoke("Hello")
    with pytest.raises(openai.BadRequestError) as long:
        chat_model(served, responses=responses).invoke(TOO_LONG)
    assert long.value.code == "context_length_exceeded"
    with pytest.raises(openai.InternalServerError) as loading:
        chat_model(served, responses=responses, model=LOADING).invoke("Hello")
    assert int(loading.value.response.headers["retry-after"]) >= 1
