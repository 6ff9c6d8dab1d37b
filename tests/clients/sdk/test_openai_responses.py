"""Responses through the openai SDK: stateless, streamed and whole, with schemas."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.clients.questions import INTRODUCED, QUESTION
from tests.clients.served import MODEL, Served

pytestmark = pytest.mark.vllm

WHOLE_TEXT = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
]


class Topic(BaseModel):
    """What a structured answer must look like."""

    topic: str
    known: bool


def test_a_response_is_the_same_streamed_and_whole(client: Any) -> None:
    whole = client.responses.create(model=MODEL, input=QUESTION, temperature=0)
    events: list[Any] = list(
        client.responses.create(model=MODEL, input=QUESTION, temperature=0, stream=True)
    )
    assert whole.status == "completed"
    assert whole.model == MODEL
    assert whole.output_text
    final = events[-1].response
    assert final.output_text == whole.output_text
    assert "".join(e.delta for e in events if e.type.endswith("text.delta")) == whole.output_text
    assert final.usage.output_tokens == whole.usage.output_tokens > 0


def test_the_events_come_in_the_order_that_clients_wait_for(client: Any) -> None:
    events: list[Any] = list(client.responses.create(model=MODEL, input=QUESTION, stream=True))
    assert list(dict.fromkeys(e.type for e in events)) == WHOLE_TEXT
    assert [e.sequence_number for e in events] == list(range(len(events)))
    streamed = {e.item_id for e in events if hasattr(e, "item_id")}
    assert streamed == {item.id for item in events[-1].response.output}


async def test_the_async_client_streams(async_client: Any) -> None:
    stream = await async_client.responses.create(model=MODEL, input=QUESTION, stream=True)
    events = [event async for event in stream]
    assert events[-1].type == "response.completed"


def test_the_stream_helper_gathers_the_final_response(client: Any) -> None:
    with client.responses.stream(model=MODEL, input=QUESTION, temperature=0) as stream:
        text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert final.output_text == text


def test_parse_gives_an_object_of_the_asked_class(client: Any) -> None:
    reply = client.responses.parse(
        model=MODEL,
        input="What is a gateway? Answer in JSON.",
        text_format=Topic,
        temperature=0,
        max_output_tokens=200,
    )
    assert isinstance(reply.output_parsed, Topic)


def test_instructions_and_earlier_messages_are_heard(client: Any) -> None:
    reply = client.responses.create(
        model=MODEL,
        instructions="You are a helpful assistant.",
        input=INTRODUCED,
        temperature=0,
    )
    assert "Ada" in reply.output_text


def test_an_answer_cut_by_its_limit_is_incomplete_and_says_why(client: Any) -> None:
    whole = client.responses.create(model=MODEL, input=QUESTION, max_output_tokens=3)
    events: list[Any] = list(
        client.responses.create(model=MODEL, input=QUESTION, max_output_tokens=3, stream=True)
    )
    assert whole.status == "incomplete"
    assert whole.incomplete_details is not None
    assert whole.incomplete_details.reason == "max_output_tokens"
    assert events[-1].type == "response.incomplete"
    assert events[-1].response.status == "incomplete"


def test_nothing_is_stored_and_what_would_need_it_says_so(client: Any) -> None:
    reply = client.responses.create(model=MODEL, input=QUESTION, store=True, max_output_tokens=3)
    assert reply.model_dump()["store"] is False
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model=MODEL, input="more", previous_response_id=reply.id)
    assert caught.value.param == "previous_response_id"
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(reply.id)


def test_the_version_of_its_prompt_comes_back_and_stands_in_the_log(
    served: Served, client: Any
) -> None:
    said = {"prompt_version": "greeting-7"}
    reply = client.responses.create(model=MODEL, input=QUESTION, metadata=said, max_output_tokens=3)
    assert reply.metadata == said
    assert served.last_settled()["prompt_version"] == "greeting-7"


def test_a_closed_stream_leaves_the_engine_idle(served: Served, client: Any) -> None:
    stream: Any = client.responses.create(
        model=MODEL,
        input=QUESTION,
        stream=True,
        max_output_tokens=1900,
        extra_body={"ignore_eos": True},
    )
    next(event for event in stream if event.type == "response.output_text.delta")
    stream.close()
    served.wait_until_idle()
    assert served.last_settled()["outcome"] == "cancelled"
