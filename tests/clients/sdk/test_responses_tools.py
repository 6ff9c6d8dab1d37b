"""Function tools in Responses through the openai SDK."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from tests.clients.questions import (
    LONG_FUNCTION,
    QUESTION,
    SEARCH_FUNCTION,
    WEATHER,
    WEATHER_FUNCTION,
)
from tests.clients.sdk.calls import Called
from tests.clients.served import MODEL

pytestmark = pytest.mark.vllm

TOOLS: list[Any] = [
    {"type": "function", **SEARCH_FUNCTION},
    {"type": "function", **WEATHER_FUNCTION},
]
LONG: Any = {"type": "function", **LONG_FUNCTION}
CALL_EVENTS = [
    "response.output_item.added",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.done",
]
demanded = pytest.mark.parametrize(
    "choice",
    ["required", {"type": "function", "name": "get_weather"}],
    ids=["required", "named"],
)


def ask(client: Any, text: Any = WEATHER, **more: Any) -> Any:
    """A greedy response with both tools on offer."""
    asked = {"model": MODEL, "input": text, "tools": TOOLS, "temperature": 0, **more}
    return client.responses.create(**{"max_output_tokens": 200, **asked})


def calls_of(response: Any) -> list[Called]:
    """The calls of a response."""
    items = [item for item in response.output if item.type == "function_call"]
    assert all(item.call_id for item in items)
    assert len({item.call_id for item in items}) == len(items), "two calls share an id"
    return [Called(item.name, json.loads(item.arguments)) for item in items]


@demanded
def test_a_demanded_call_is_the_same_streamed_and_whole_and_keeps_to_its_schema(
    client: Any, choice: Any
) -> None:
    whole = ask(client, QUESTION, tool_choice=choice)
    events: list[Any] = list(ask(client, QUESTION, tool_choice=choice, stream=True))
    assert whole.status == events[-1].response.status == "completed"
    assert calls_of(events[-1].response) == calls_of(whole)
    for call in calls_of(whole):
        wanted = {"get_weather": "city", "search": "query"}[call.name]
        assert list(call.arguments) == [wanted]
        assert isinstance(call.arguments[wanted], str)
    assert choice == "required" or [c.name for c in calls_of(whole)] == ["get_weather"]


def test_the_events_of_a_call_come_in_the_order_that_clients_wait_for(client: Any) -> None:
    events: list[Any] = list(ask(client, tool_choice="required", stream=True))
    final = events[-1].response
    item = next(item for item in final.output if item.type == "function_call")
    own = [e for e in events if getattr(e, "item_id", None) == item.id or is_item(e, item.id)]
    assert list(dict.fromkeys(e.type for e in own)) == CALL_EVENTS
    joined = "".join(e.delta for e in own if e.type == CALL_EVENTS[1])
    (done,) = (e for e in own if e.type == CALL_EVENTS[2])
    assert joined == done.arguments == item.arguments
    assert [e.sequence_number for e in events] == list(range(len(events)))


def is_item(event: Any, item_id: str) -> bool:
    """Whether an event begins or ends this item."""
    return bool(event.type.startswith("response.output_item.") and event.item.id == item_id)


def test_the_stream_helper_gathers_the_calls(client: Any) -> None:
    with client.responses.stream(
        model=MODEL, input=WEATHER, tools=TOOLS, tool_choice="required", temperature=0
    ) as stream:
        deltas = [e for e in stream if e.type == "response.function_call_arguments.delta"]
        final = stream.get_final_response()
    assert deltas[-1].snapshot == final.output[-1].arguments
    assert calls_of(final)


def test_no_tool_is_called_where_the_caller_wants_none(client: Any) -> None:
    reply = ask(client, tool_choice="none")
    assert [item.type for item in reply.output] == ["message"]
    assert reply.output_text


def test_a_call_that_is_cut_short_says_so(client: Any) -> None:
    cut: dict[str, Any] = {"tools": [LONG], "tool_choice": "required", "max_output_tokens": 40}
    events: list[Any] = list(ask(client, **cut, stream=True))
    assert ask(client, **cut).status == "incomplete"
    assert events[-1].type == "response.incomplete"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "wrong",
    [
        {"tools": [{"type": "function", "description": "no name"}]},
        {"tools": []},
        {"tool_choice": {"type": "function", "name": "nobody"}},
    ],
    ids=["no name", "no tools", "an unknown name"],
)
def test_tools_that_cannot_be_called_are_bad_requests(
    client: Any, wrong: dict[str, Any], stream: bool
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, stream=stream, **{"tool_choice": "required", **wrong})
    assert caught.value.type == "invalid_request_error"
