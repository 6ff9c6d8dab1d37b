"""Tools that the model calls by itself, and the words it makes of their results; with each SDK."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from tests.clients.questions import (
    QUESTION,
    WEATHER,
    WEATHER_OF_TWO,
    WEATHER_RESULT,
    WEATHER_TOLD,
    asking,
)
from tests.clients.sdk import test_anthropic_tools, test_openai_tools, test_responses_tools
from tests.clients.sdk.calls import Called, called, called_in
from tests.clients.served import MODEL

pytestmark = pytest.mark.vllm

PARIS = Called("get_weather", {"city": "Paris"})
ROME = Called("get_weather", {"city": "Rome"})
one_or_two = pytest.mark.parametrize(
    ("question", "calls"), [(WEATHER, [PARIS]), (WEATHER_OF_TWO, [PARIS, ROME])], ids=["one", "two"]
)

chat = test_openai_tools.ask
respond = test_responses_tools.ask


def message(claude: Any, text: str = WEATHER, **more: Any) -> Any:
    """A message of Anthropic's API, with tools."""
    return claude.messages.create(**test_anthropic_tools.asked(text, **more))


def blocks(answer: Any) -> list[Called]:
    """The calls of such a message."""
    return [Called(name, given) for name, given in test_anthropic_tools.uses(answer)]


@one_or_two
def test_a_chat_calls_what_fits_the_same_streamed_and_whole(
    client: Any, question: str, calls: list[Called]
) -> None:
    whole = chat(client, question).choices[0]
    assert called(whole.message) == calls
    assert whole.finish_reason == "tool_calls"
    assert called_in(list(chat(client, question, stream=True))) == (calls, "tool_calls")


@one_or_two
def test_a_response_calls_what_fits_the_same_streamed_and_whole(
    client: Any, question: str, calls: list[Called]
) -> None:
    events: list[Any] = list(respond(client, question, stream=True))
    assert test_responses_tools.calls_of(events[-1].response) == calls
    assert test_responses_tools.calls_of(respond(client, question)) == calls


@one_or_two
def test_a_message_calls_what_fits_the_same_streamed_and_whole(
    claude: Any, question: str, calls: list[Called]
) -> None:
    whole = message(claude, question)
    with claude.messages.stream(**test_anthropic_tools.asked(question)) as stream:
        parts = [event.partial_json for event in stream if event.type == "input_json"]
        final = stream.get_final_message()
    assert whole.stop_reason == final.stop_reason == "tool_use"
    assert blocks(whole) == blocks(final) == calls
    assert "".join(parts) == "".join(json.dumps(call.arguments) for call in calls)


def test_a_talk_stays_a_talk_where_no_tool_fits(client: Any, claude: Any) -> None:
    plain = client.chat.completions.create(model=MODEL, messages=asking(QUESTION))
    told = chat(client, QUESTION).choices[0]
    assert not told.message.tool_calls
    assert told.finish_reason == plain.choices[0].finish_reason == "stop"
    assert told.message.content
    assert message(claude, QUESTION).stop_reason == "end_turn"
    assert respond(client, QUESTION).output_text


def test_only_one_call_is_made_where_the_caller_wants_no_more(client: Any) -> None:
    reply = chat(client, WEATHER_OF_TWO, parallel_tool_calls=False).choices[0]
    assert called(reply.message) == [PARIS]


def test_a_chat_ends_in_words_that_hold_the_result(client: Any) -> None:
    first = chat(client).choices[0].message
    result = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": WEATHER_RESULT}
    told = chat(client, messages=[*asking(WEATHER), first, result]).choices[0]
    assert told.message.content == WEATHER_TOLD
    assert told.finish_reason == "stop"


async def test_an_async_chat_does_too_streamed(async_client: Any) -> None:
    asked: dict[str, Any] = {
        "model": MODEL,
        "tools": [openai.pydantic_function_tool(test_openai_tools.GetWeather, name="get_weather")],
        "temperature": 0,
    }
    async with async_client.chat.completions.stream(messages=asking(WEATHER), **asked) as stream:
        first = (await stream.get_final_completion()).choices[0].message
    result = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": WEATHER_RESULT}
    given = [*asking(WEATHER), first.model_dump(exclude_none=True), result]
    async with async_client.chat.completions.stream(messages=given, **asked) as stream:
        told = [event.delta async for event in stream if event.type == "content.delta"]
    assert "".join(told) == WEATHER_TOLD


def test_a_response_ends_in_words_that_hold_the_result(client: Any) -> None:
    first = respond(client)
    (call,) = (item for item in first.output if item.type == "function_call")
    result = {"type": "function_call_output", "call_id": call.call_id, "output": WEATHER_RESULT}
    given = [*asking(WEATHER), *first.output, result]
    assert respond(client, given).output_text == WEATHER_TOLD
    events: list[Any] = list(respond(client, given, stream=True))
    assert events[-1].response.output_text == WEATHER_TOLD


def test_a_message_ends_in_words_that_hold_the_result(claude: Any) -> None:
    first = message(claude)
    result = {
        "type": "tool_result",
        "tool_use_id": first.content[-1].id,
        "content": WEATHER_RESULT,
    }
    given = [
        *asking(WEATHER),
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [result]},
    ]
    told = message(claude, messages=given)
    assert told.stop_reason == "end_turn"
    assert told.content[0].text == WEATHER_TOLD
