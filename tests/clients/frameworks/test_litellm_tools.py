"""litellm's tools, by its provider for OpenAI-compatible servers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.clients.frameworks.test_litellm import ask, litellm, penstock
from tests.clients.questions import (
    PERSON,
    PERSON_SCHEMA,
    QUESTION,
    WEATHER,
    WEATHER_FUNCTION,
    WEATHER_OF_TWO,
    WEATHER_RESULT,
    WEATHER_TOLD,
    WEATHER_TOOL,
    asking,
)
from tests.clients.served import MODEL

# The libraries warn of each other: not our concern here.
pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]
__all__ = ["penstock"]  # the fixture

TOOL: dict[str, Any] = {"type": "function", **WEATHER_FUNCTION}


def calls_of(reply: Any) -> list[tuple[str, Any]]:
    """Names and arguments of the calls of a whole answer."""
    calls = reply.choices[0].message.tool_calls or []
    return [(call.function.name, json.loads(call.function.arguments)) for call in calls]


def test_a_demanded_call_is_the_same_streamed_and_whole(penstock: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"tools": [WEATHER_TOOL], "tool_choice": "required"}
    whole = ask(penstock, QUESTION, **asked)
    joined = litellm.stream_chunk_builder(list(ask(penstock, QUESTION, **asked, stream=True)))
    assert calls_of(joined) == calls_of(whole)
    assert {name for name, _ in calls_of(whole)} == {"get_weather"}
    assert joined.choices[0].finish_reason == whole.choices[0].finish_reason == "tool_calls"


def test_a_schema_is_kept_to(penstock: dict[str, Any]) -> None:
    wanted = {"name": "person", "schema": PERSON_SCHEMA, "strict": True}
    reply = ask(penstock, PERSON, response_format={"type": "json_schema", "json_schema": wanted})
    assert set(json.loads(reply.choices[0].message.content)) == {"name", "age"}


def test_a_tool_that_is_not_there_cannot_be_demanded(penstock: dict[str, Any]) -> None:
    nobody = {"type": "function", "function": {"name": "nobody"}}
    with pytest.raises(litellm.BadRequestError):
        ask(penstock, tools=[WEATHER_TOOL], tool_choice=nobody)


def test_the_loop_ends_in_words_that_hold_the_result(penstock: dict[str, Any]) -> None:
    message = ask(penstock, WEATHER, tools=[WEATHER_TOOL]).choices[0].message
    (call,) = message.tool_calls
    result = {"role": "tool", "tool_call_id": call.id, "content": WEATHER_RESULT}
    told = ask(penstock, tools=[WEATHER_TOOL], messages=[*asking(WEATHER), message, result])
    assert told.choices[0].message.content == WEATHER_TOLD


def test_two_calls_are_made_at_once_and_streamed_apart(penstock: dict[str, Any]) -> None:
    chunks = list(ask(penstock, WEATHER_OF_TWO, tools=[WEATHER_TOOL], stream=True))
    calls = calls_of(litellm.stream_chunk_builder(chunks))
    assert calls == [("get_weather", {"city": "Paris"}), ("get_weather", {"city": "Rome"})]


def test_responses_call_and_hear_of_the_result(penstock: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"model": f"openai/{MODEL}", "tools": [TOOL], "temperature": 0}
    events = list(litellm.responses(input=WEATHER, **asked, **penstock, stream=True))
    items = [item.model_dump() for item in events[-1].response.output]
    (call,) = (item for item in items if item["type"] == "function_call")
    assert json.loads(call["arguments"]) == {"city": "Paris"}
    result = {
        "type": "function_call_output",
        "call_id": call["call_id"],
        "output": WEATHER_RESULT,
    }
    told = litellm.responses(input=[*asking(WEATHER), *items, result], **asked, **penstock)
    assert told.output[0].content[0].text == WEATHER_TOLD
