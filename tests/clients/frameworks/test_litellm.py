"""litellm's completion, responses and embedding, by its provider for OpenAI-compatible servers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.questions import QUESTION, TOO_LONG, asking
from tests.clients.served import EMBEDDER, LOADING, MODEL, Served

litellm = pytest.importorskip("litellm", reason="litellm does not run on this Python")
# The libraries warn of each other: not our concern here.
pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def penstock(served: Served) -> dict[str, Any]:
    """What every call of litellm's is given."""
    return {"api_base": served.base_url, "api_key": "none", "max_retries": 0, "num_retries": 0}


def ask(penstock: dict[str, Any], text: str = QUESTION, **more: Any) -> Any:
    """A greedy chat."""
    return litellm.completion(
        **{
            "model": f"openai/{MODEL}",
            "messages": asking(text),
            "temperature": 0,
            "max_tokens": 200,
            **penstock,
            **more,
        }
    )


def test_a_completion_says_the_same_streamed_and_whole(penstock: dict[str, Any]) -> None:
    whole = ask(penstock)
    chunks = list(ask(penstock, stream=True))
    text = "".join(c.choices[0].delta.content or "" for c in chunks)
    assert whole.choices[0].message.content == text
    assert text
    assert whole.choices[0].finish_reason == chunks[-1].choices[0].finish_reason == "stop"
    assert whole.usage.completion_tokens > 0


async def test_acompletion_streams(penstock: dict[str, Any]) -> None:
    stream = await litellm.acompletion(
        model=f"openai/{MODEL}", messages=asking(QUESTION), stream=True, **penstock
    )
    assert "".join([c.choices[0].delta.content or "" async for c in stream])


def test_responses_say_the_same_streamed_and_whole(penstock: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"model": f"openai/{MODEL}", "input": QUESTION, "temperature": 0}
    whole = litellm.responses(**asked, **penstock)
    events = list(litellm.responses(**asked, **penstock, stream=True))
    assert events[-1].type == "response.completed"
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert whole.output[0].content[0].text == text
    assert text


def test_sentences_are_embedded(penstock: dict[str, Any]) -> None:
    reply = litellm.embedding(
        model=f"openai/{EMBEDDER}", input=["The cat sleeps.", "A gateway."], **penstock
    )
    assert [len(each["embedding"]) > 8 for each in reply.data] == [True, True]


def test_errors_are_of_litellms_own_classes(penstock: dict[str, Any]) -> None:
    with pytest.raises(litellm.NotFoundError):
        ask(penstock, model="openai/gpt-9")
    with pytest.raises(litellm.BadRequestError):
        ask(penstock, top_p=7)
    with pytest.raises(litellm.ContextWindowExceededError):
        ask(penstock, TOO_LONG)
    with pytest.raises(litellm.ServiceUnavailableError) as loading:
        ask(penstock, model=f"openai/{LOADING}")
    assert loading.value.status_code == 503
