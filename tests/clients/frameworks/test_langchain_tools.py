"""LangChain's tools and structured outputs, over chat completions and over Responses."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from pydantic import BaseModel

from tests.clients.frameworks.test_langchain import chat_model, over_both
from tests.clients.questions import (
    PERSON,
    QUESTION,
    WEATHER,
    WEATHER_OF_TWO,
    WEATHER_RESULT,
    WEATHER_TOLD,
)
from tests.clients.served import Served

# The libraries warn of each other: not our concern here.
pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]


class Person(BaseModel):
    """Who is spoken of."""

    name: str
    age: int


@tool  # type: ignore[untyped-decorator]
def get_weather(city: str) -> str:
    """The weather in a city."""
    return WEATHER_RESULT


def with_tools(served: Served, responses: bool, **more: Any) -> Any:
    """The model with a tool bound to it."""
    return chat_model(served, responses=responses).bind_tools([get_weather], **more)


@over_both
def test_a_demanded_call_keeps_to_its_schema(served: Served, responses: bool) -> None:
    for choice in ("any", "get_weather"):
        reply = with_tools(served, responses, tool_choice=choice).invoke(QUESTION)
        assert not reply.invalid_tool_calls
        assert {call["name"] for call in reply.tool_calls} == {"get_weather"}
        assert all(isinstance(call["args"]["city"], str) for call in reply.tool_calls)


@over_both
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_outputs_are_of_the_asked_class(
    served: Served, responses: bool, method: str
) -> None:
    model = chat_model(served, responses=responses).with_structured_output(Person, method=method)
    assert isinstance(model.invoke(PERSON), Person)


@over_both
def test_a_tool_that_is_not_there_cannot_be_demanded(served: Served, responses: bool) -> None:
    model = with_tools(served, responses)
    nobody = {"type": "function", "function": {"name": "nobody"}}
    with pytest.raises(openai.BadRequestError):
        model.bind(tool_choice=nobody).invoke(WEATHER)


@over_both
def test_a_call_is_the_same_streamed_and_whole(served: Served, responses: bool) -> None:
    model = with_tools(served, responses)
    whole = model.invoke(WEATHER)
    first, *rest = model.stream(WEATHER)
    for chunk in rest:
        first += chunk
    assert [(c["name"], c["args"]) for c in first.tool_calls] == [
        ("get_weather", {"city": "Paris"})
    ]
    assert [(c["name"], c["args"]) for c in whole.tool_calls] == [
        ("get_weather", {"city": "Paris"})
    ]


@over_both
def test_the_loop_ends_in_words_that_hold_the_result(served: Served, responses: bool) -> None:
    model = with_tools(served, responses)
    asked = model.invoke(WEATHER)
    results = [get_weather.invoke(call) for call in asked.tool_calls]
    told = model.invoke([HumanMessage(WEATHER), asked, *results])
    assert told.text == WEATHER_TOLD


@over_both
def test_two_calls_are_made_at_once(served: Served, responses: bool) -> None:
    reply = with_tools(served, responses).invoke(WEATHER_OF_TWO)
    assert [call["args"] for call in reply.tool_calls] == [{"city": "Paris"}, {"city": "Rome"}]
    assert len({call["id"] for call in reply.tool_calls}) == 2
