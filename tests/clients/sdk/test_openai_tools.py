"""Tools that the caller demands, of chat completions by the openai SDK; and what goes wrong."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.clients.questions import LONG_TOOL, QUESTION, SEARCH_TOOL, WEATHER, WEATHER_TOOL, asking
from tests.clients.sdk.calls import Called, called, called_in
from tests.clients.served import MODEL, Served

pytestmark = pytest.mark.vllm

TOOLS = [SEARCH_TOOL, WEATHER_TOOL]
NAMED: Any = {"type": "function", "function": {"name": "get_weather"}}

NONSENSE = {"type": "nonsense"}


class GetWeather(BaseModel):
    """The weather in a city."""

    city: str


def ask(client: Any, text: str = WEATHER, **more: Any) -> Any:
    """A greedy chat with both tools on offer."""
    asked = {"model": MODEL, "messages": asking(text), "tools": TOOLS, "temperature": 0, **more}
    return client.chat.completions.create(**{"max_tokens": 200, **asked})


def holds(call: Called) -> bool:
    """Whether a call keeps to the schema of its tool."""
    wanted = {"get_weather": "city", "search": "query"}[call.name]
    return list(call.arguments) == [wanted] and isinstance(call.arguments[wanted], str)


@pytest.mark.parametrize("choice", ["required", NAMED], ids=["required", "named"])
def test_a_demanded_call_is_the_same_streamed_and_whole_and_keeps_to_its_schema(
    client: Any, choice: Any
) -> None:
    whole = ask(client, QUESTION, tool_choice=choice).choices[0]
    chunks = list(ask(client, QUESTION, tool_choice=choice, stream=True))
    calls, reason = called_in(chunks)
    assert calls == called(whole.message)
    assert reason == whole.finish_reason
    assert reason in ("tool_calls", "stop")
    assert all(holds(call) for call in calls)
    assert choice == "required" or [call.name for call in calls] == ["get_weather"]


def test_no_tool_is_called_where_the_caller_wants_none(client: Any) -> None:
    reply = ask(client, tool_choice="none").choices[0]
    assert not reply.message.tool_calls
    assert reply.message.content
    assert reply.finish_reason == "stop"


def test_parse_gives_the_arguments_as_the_asked_class(client: Any) -> None:
    reply = client.chat.completions.parse(
        model=MODEL,
        messages=asking(WEATHER),
        tools=[openai.pydantic_function_tool(GetWeather)],
        tool_choice="required",
        temperature=0,
        max_tokens=200,
    )
    (call, *_) = reply.choices[0].message.tool_calls
    assert isinstance(call.function.parsed_arguments, GetWeather)


def test_the_stream_helper_gathers_calls_and_their_arguments(client: Any) -> None:
    with client.chat.completions.stream(
        model=MODEL,
        messages=asking(WEATHER),
        tools=[openai.pydantic_function_tool(GetWeather)],
        tool_choice="required",
        temperature=0,
        max_tokens=200,
    ) as stream:
        events = list(stream)
        final = stream.get_final_completion()
    deltas = [e for e in events if e.type == "tool_calls.function.arguments.delta"]
    done = [e for e in events if e.type == "tool_calls.function.arguments.done"]
    (call, *_) = final.choices[0].message.tool_calls
    assert "".join(e.arguments_delta for e in deltas if e.index == 0) == call.function.arguments
    assert done[0].arguments == call.function.arguments
    assert isinstance(call.function.parsed_arguments, GetWeather)


def test_a_call_that_is_cut_short_says_so(client: Any) -> None:
    cut: dict[str, Any] = {"tools": [LONG_TOOL], "tool_choice": "required", "max_tokens": 40}
    whole = ask(client, **cut).choices[0]
    _, reason = called_in(list(ask(client, **cut, stream=True)))
    assert whole.finish_reason == reason == "length"
    with pytest.raises(openai.LengthFinishReasonError):
        client.chat.completions.parse(model=MODEL, messages=asking(WEATHER), **cut)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"tools": [{"type": "function", "function": {"description": "no name"}}]}, "name"),
        ({"tools": []}, "tools"),
        ({"tools": None}, "tools"),
        ({"tool_choice": {"type": "function", "function": {"name": "nobody"}}}, "tool"),
        (
            {"tools": [{"type": "function", "function": {"name": "a", "parameters": NONSENSE}}]},
            NONSENSE["type"],
        ),
    ],
    ids=["no name", "no tools", "tools are null", "an unknown name", "no schema"],
)
def test_tools_that_cannot_be_called_are_bad_requests_that_say_why(
    client: Any, wrong: dict[str, Any], told: str, stream: bool
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, stream=stream, **{"tool_choice": "required", **wrong})
    assert caught.value.type == "invalid_request_error"
    assert told in caught.value.message


def test_a_stream_that_is_closed_within_a_call_leaves_the_engine_idle(
    served: Served, client: Any
) -> None:
    endless: dict[str, Any] = {"tools": [LONG_TOOL], "tool_choice": "required", "max_tokens": 1900}
    stream = ask(client, stream=True, **endless)
    next(chunk for chunk in stream if chunk.choices[0].delta.tool_calls)
    stream.close()
    served.wait_until_idle()
    assert served.last_settled()["outcome"] == "cancelled"
