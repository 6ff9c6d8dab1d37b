"""Tools in messages through the Anthropic SDK."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.questions import (
    LONG_FUNCTION,
    QUESTION,
    SEARCH_FUNCTION,
    WEATHER,
    WEATHER_FUNCTION,
    asking,
)
from tests.clients.served import MODEL
from tests.fakes.lazily import anthropic

pytestmark = pytest.mark.vllm


def tool_of(function: dict[str, Any]) -> dict[str, Any]:
    """A function as this API wants it."""
    return {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
    }


TOOLS = [tool_of(SEARCH_FUNCTION), tool_of(WEATHER_FUNCTION)]
demanded = pytest.mark.parametrize(
    "choice", [{"type": "any"}, {"type": "tool", "name": "get_weather"}], ids=["any", "tool"]
)


def asked(text: str = WEATHER, **more: Any) -> dict[str, Any]:
    """A greedy message with both tools on offer."""
    return {
        "model": MODEL,
        "max_tokens": 200,
        "messages": asking(text),
        "tools": TOOLS,
        "extra_body": {"temperature": 0},
        **more,
    }


def uses(message: Any) -> list[tuple[str, Any]]:
    """The calls of a message."""
    blocks = [block for block in message.content if block.type == "tool_use"]
    assert len({block.id for block in blocks}) == len(blocks), "two calls share an id"
    return [(block.name, block.input) for block in blocks]


@demanded
def test_a_demanded_call_is_the_same_streamed_and_whole_and_keeps_to_its_schema(
    claude: Any, choice: Any
) -> None:
    whole = claude.messages.create(**asked(QUESTION, tool_choice=choice))
    with claude.messages.stream(**asked(QUESTION, tool_choice=choice)) as stream:
        parts = [event.partial_json for event in stream if event.type == "input_json"]
        final = stream.get_final_message()
    assert whole.stop_reason == final.stop_reason == "tool_use"
    assert uses(final) == uses(whole)
    assert parts
    for name, given in uses(whole):
        wanted = {"get_weather": "city", "search": "query"}[name]
        assert list(given) == [wanted]
        assert isinstance(given[wanted], str)
    assert choice["type"] == "any" or [name for name, _ in uses(whole)] == ["get_weather"]


@pytest.mark.parametrize(
    "choice", [{"type": "any"}, {"type": "tool", "name": "write_story"}], ids=["any", "tool"]
)
def test_a_call_cut_by_its_limit_says_so_and_its_input_is_an_object(
    claude: Any, choice: Any
) -> None:
    cut = asked(tools=[tool_of(LONG_FUNCTION)], tool_choice=choice, max_tokens=40)
    whole = claude.messages.create(**cut)
    with claude.messages.stream(**cut) as stream:
        final = stream.get_final_message()
    assert whole.stop_reason == final.stop_reason == "max_tokens"
    assert all(isinstance(given, dict) for _, given in uses(whole) + uses(final))


def test_no_tool_is_called_where_the_caller_wants_none(claude: Any) -> None:
    reply = claude.messages.create(**asked(tool_choice={"type": "none"}))
    assert reply.stop_reason == "end_turn"
    assert [block.type for block in reply.content] == ["text"]


def test_tools_count_as_tokens_of_the_prompt(claude: Any) -> None:
    given = {"model": MODEL, "messages": asking(WEATHER)}
    counted = claude.messages.count_tokens(**given, tools=TOOLS)
    answered = claude.messages.create(**asked(tool_choice={"type": "auto"}))
    assert counted.input_tokens == answered.usage.input_tokens
    assert counted.input_tokens > claude.messages.count_tokens(**given).input_tokens


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "wrong",
    [
        {"tools": [{"name": "get_weather"}]},
        {"tool_choice": {"type": "tool", "name": "nobody"}},
        {"tools": [], "tool_choice": {"type": "any"}},
    ],
    ids=["no schema", "an unknown name", "no tools"],
)
def test_tools_that_cannot_be_called_are_bad_requests(
    claude: Any, wrong: dict[str, Any], stream: bool
) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        claude.messages.create(**asked(stream=stream, **wrong))
    body: Any = caught.value.body
    assert body["error"]["type"] == "invalid_request_error"
