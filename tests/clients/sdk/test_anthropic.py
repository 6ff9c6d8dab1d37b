"""Messages through the Anthropic SDK."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.questions import (
    INTRODUCED,
    QUESTION,
    STORY,
    TOO_LONG,
    asking,
)
from tests.clients.served import LOADING, MODEL, Served
from tests.fakes.lazily import anthropic

pytestmark = pytest.mark.vllm

streamed_or_not = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def ask(claude: Any, text: str, **more: Any) -> Any:
    """One message, answered greedily unless the test says otherwise."""
    asked = {"model": MODEL, "max_tokens": 200, "messages": asking(text), **more}
    return claude.messages.create(**asked, extra_body={"temperature": 0})


def error_of(caught: pytest.ExceptionInfo[Any]) -> Any:
    """What the error's body says, in the shape that the SDK reads."""
    body: Any = caught.value.body
    assert body["type"] == "error"
    assert body["request_id"] == caught.value.response.headers["x-request-id"]
    return body["error"]


def test_a_message_is_answered_the_same_streamed_and_whole(claude: Any) -> None:
    whole = ask(claude, QUESTION)
    with claude.messages.stream(
        model=MODEL,
        max_tokens=200,
        messages=asking(QUESTION),
        extra_body={"temperature": 0},
    ) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert whole.stop_reason == final.stop_reason == "end_turn"
    assert whole.model == final.model == MODEL
    assert whole.content[0].text == final.content[0].text == text
    assert whole.usage.output_tokens == final.usage.output_tokens > 0


def test_the_events_come_in_the_order_that_clients_wait_for(claude: Any) -> None:
    kinds = [event.type for event in ask(claude, QUESTION, stream=True)]
    assert [k for k in dict.fromkeys(kinds) if k != "ping"] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


async def test_the_async_client_streams(served: Served) -> None:
    async with (
        anthropic.AsyncAnthropic(base_url=served.root_url, api_key="none") as claude,
        claude.messages.stream(model=MODEL, max_tokens=50, messages=asking(QUESTION)) as stream,
    ):
        assert "".join([text async for text in stream.text_stream])


def test_an_answer_cut_by_its_limit_or_a_stop_sequence_says_so(
    claude: Any,
) -> None:
    whole = ask(claude, QUESTION)
    word = whole.content[0].text.split()[3]
    assert ask(claude, QUESTION, max_tokens=3).stop_reason == "max_tokens"
    stopped = ask(claude, QUESTION, stop_sequences=[word])
    assert stopped.stop_reason == "stop_sequence"
    assert stopped.stop_sequence == word
    assert word not in stopped.content[0].text


def test_a_system_prompt_and_earlier_messages_are_heard(claude: Any) -> None:
    *before, last = INTRODUCED
    reply = claude.messages.create(
        model=MODEL,
        max_tokens=100,
        system="You are a helpful assistant.",
        messages=[*before, {**last, "content": [{"type": "text", "text": last["content"]}]}],
        extra_body={"temperature": 0},
    )
    assert reply.content[0].type == "text"
    assert "Ada" in reply.content[0].text


def test_tokens_are_counted_as_the_answer_counts_them(claude: Any) -> None:
    counted = claude.messages.count_tokens(model=MODEL, messages=asking(QUESTION))
    assert counted.input_tokens == ask(claude, QUESTION).usage.input_tokens


def test_a_closed_stream_leaves_the_engine_idle(served: Served, claude: Any) -> None:
    stream = ask(claude, STORY, stream=True, max_tokens=1900)
    next(event for event in stream if event.type == "content_block_delta")
    stream.close()
    served.wait_until_idle()
    assert served.last_settled()["outcome"] == "cancelled"


@streamed_or_not
def test_an_unknown_model_is_not_found(claude: Any, stream: bool) -> None:
    with pytest.raises(anthropic.NotFoundError) as caught:
        ask(claude, "Hello", model="claude-9", stream=stream)
    error = error_of(caught)
    assert error["type"] == "not_found_error"
    assert "claude-9" in error["message"]
    assert MODEL in error["message"]


@streamed_or_not
def test_bad_fields_and_long_prompts_are_bad_requests(claude: Any, stream: bool) -> None:
    for wrong in ({"messages": asking(TOO_LONG)}, {"stop_sequences": 7}):
        with pytest.raises(anthropic.BadRequestError) as caught:
            ask(claude, "Hello", stream=stream, **wrong)
        assert error_of(caught)["type"] == "invalid_request_error"


@streamed_or_not
def test_a_model_that_loads_is_unavailable_and_says_when_to_come_back(
    claude: Any, stream: bool
) -> None:
    with pytest.raises(anthropic.InternalServerError) as caught:
        ask(claude, "Hello", model=LOADING, stream=stream)
    assert caught.value.status_code == 503
    assert error_of(caught)["type"] in ("overloaded_error", "api_error")
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 60
