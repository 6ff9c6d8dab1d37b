"""Chat completions through the openai SDK."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.clients.questions import QUESTION, asking
from tests.clients.served import MODEL, Served

pytestmark = pytest.mark.vllm


class Topic(BaseModel):
    """What a structured answer must look like."""

    topic: str
    known: bool


def test_a_chat_is_answered_the_same_streamed_and_whole(client: Any) -> None:
    whole = client.chat.completions.create(model=MODEL, messages=asking(QUESTION), temperature=0)
    stream = client.chat.completions.create(
        model=MODEL,
        messages=asking(QUESTION),
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert whole.choices[0].finish_reason == "stop"
    assert whole.model == MODEL
    assert text == whole.choices[0].message.content
    assert text
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens > 0
    assert chunks[-1].usage.prompt_tokens == whole.usage.prompt_tokens > 0


async def test_the_async_client_streams(async_client: Any) -> None:
    stream = await async_client.chat.completions.create(
        model=MODEL, messages=asking(QUESTION), temperature=0, stream=True
    )
    chunks = [chunk async for chunk in stream]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_the_stream_helper_gathers_the_whole_answer(client: Any) -> None:
    with client.chat.completions.stream(
        model=MODEL, messages=asking(QUESTION), temperature=0
    ) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert final.choices[0].finish_reason == "stop"
    assert final.choices[0].message.content


async def test_the_async_stream_helper_does_too(async_client: Any) -> None:
    async with async_client.chat.completions.stream(
        model=MODEL, messages=asking(QUESTION), temperature=0
    ) as stream:
        text = "".join([e.delta async for e in stream if e.type == "content.delta"])
        final = await stream.get_final_completion()
    assert final.choices[0].message.content == text


def test_parse_gives_an_object_of_the_asked_class(client: Any) -> None:
    reply = client.chat.completions.parse(
        model=MODEL,
        messages=asking("What is a gateway? Answer in JSON."),
        response_format=Topic,
        temperature=0,
        max_tokens=200,
    )
    assert reply.choices[0].finish_reason == "stop"
    assert isinstance(reply.choices[0].message.parsed, Topic)


def test_a_json_object_ends_by_itself(client: Any) -> None:
    reply = client.chat.completions.create(
        model=MODEL,
        messages=asking("What is a gateway? Answer in JSON."),
        response_format={"type": "json_object"},
        temperature=0,
        max_tokens=200,
    )
    assert reply.choices[0].finish_reason == "stop"
    assert isinstance(json.loads(reply.choices[0].message.content or ""), dict)


def test_what_the_caller_stops_at_is_left_out(client: Any) -> None:
    whole = client.chat.completions.create(model=MODEL, messages=asking(QUESTION), temperature=0)
    text = whole.choices[0].message.content or ""
    word = text.split()[3]
    cut = client.chat.completions.create(
        model=MODEL, messages=asking(QUESTION), temperature=0, stop=[word]
    )
    assert cut.choices[0].message.content == text[: text.index(word)]
    assert cut.choices[0].finish_reason == "stop"


def test_logprobs_and_several_choices_come_as_the_sdk_reads_them(client: Any) -> None:
    reply = client.chat.completions.create(
        model=MODEL, messages=asking(QUESTION), n=2, logprobs=True, top_logprobs=2, max_tokens=5
    )
    assert [choice.index for choice in reply.choices] == [0, 1]
    for choice in reply.choices:
        assert choice.finish_reason == "length"
        assert choice.logprobs is not None
        assert choice.logprobs.content is not None
        assert [len(token.top_logprobs) for token in choice.logprobs.content] == [2] * 5


def test_completions_still_answer_prompts(client: Any) -> None:
    whole = client.completions.create(model=MODEL, prompt="A gateway", max_tokens=20, temperature=0)
    stream = client.completions.create(
        model=MODEL, prompt="A gateway", max_tokens=20, temperature=0, stream=True
    )
    assert "".join(c.choices[0].text for c in stream if c.choices) == whole.choices[0].text


def test_the_models_are_listed_and_found_by_name(client: Any) -> None:
    names = [model.id for model in client.models.list()]
    assert MODEL in names
    assert [client.models.retrieve(name).id for name in names] == names
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nobody/has this")


def test_an_answer_tells_its_request_and_its_time(served: Served, client: Any) -> None:
    raw = client.chat.completions.with_raw_response.create(
        model=MODEL,
        messages=asking(QUESTION),
        max_tokens=3,
        extra_headers={"X-Client-Request-Id": "a caller's own id"},
    )
    assert raw.headers["x-client-request-id"] == "a caller's own id"
    assert raw.headers["x-request-id"] == raw.parse()._request_id
    assert raw.headers["openai-processing-ms"].isdigit()


def test_a_closed_stream_leaves_the_engine_idle(served: Served, client: Any) -> None:
    stream: Any = client.chat.completions.create(
        model=MODEL,
        messages=asking(QUESTION),
        stream=True,
        max_tokens=1900,
        extra_body={"ignore_eos": True},
    )
    next(iter(stream))
    stream.close()
    served.wait_until_idle()
    assert served.last_settled()["outcome"] == "cancelled"
