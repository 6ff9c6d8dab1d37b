"""Tools, JSON and stop words with the real engine: penstock-mini calls, and keeps to schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.replica.vllm.engine import VllmEngine
from tests.replica.vllm.talking import ON_THE_SHARED_ENGINE, Answer, ask, body

pytestmark = ON_THE_SHARED_ENGINE


def _tool(name: str, *required: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


_STRING = {"type": "string"}
_UNIT = {"type": "string", "enum": ["celsius", "fahrenheit"]}
_TOOLS = [
    _tool("get_weather", "city", city=_STRING, unit=_UNIT),
    _tool("calculate", "expression", expression=_STRING),
    _tool("web_search", "query", query=_STRING),
]
_PARIS = ("get_weather", {"city": "Paris"})
_ROME = ("get_weather", {"city": "Rome"})
_CHOSEN = {"type": "function", "function": {"name": "get_weather"}}


async def _ask(engine: VllmEngine, question: str, **fields: Any) -> Answer:
    messages = [{"role": "user", "content": question}]
    wanted = {"messages": messages, "tools": _TOOLS, "max_tokens": 200} | fields
    return await ask(engine, body(**wanted))


def _calls(answer: Answer, ended: str = "tool_calls") -> list[tuple[str, Any]]:
    """The calls of an answer, streamed or not; an answer with calls ends by saying so."""
    names: dict[int, str] = {}
    arguments: dict[int, str] = {}
    for at, call in _parts(answer):
        function = call["function"]
        names[at] = names.get(at, "") + (function.get("name") or "")
        arguments[at] = arguments.get(at, "") + (function.get("arguments") or "")
    assert not names or _finish(answer) == ended
    return [(names[at], json.loads(arguments[at])) for at in sorted(names)]


def _parts(answer: Answer) -> list[tuple[int, Any]]:
    if answer.head is not None and answer.head.content_type == "application/json":
        choice = answer.json["choices"][0]
        calls = choice["message"].get("tool_calls") or []
        return list(enumerate(calls))
    choices = [choice for event in answer.sse for choice in event["choices"]]
    return [
        (call["index"], call)
        for choice in choices
        for call in choice["delta"].get("tool_calls") or []
    ]


def _finish(answer: Answer) -> Any:
    if answer.head is not None and answer.head.content_type == "application/json":
        return answer.json["choices"][0]["finish_reason"]
    ends = [choice["finish_reason"] for event in answer.sse for choice in event["choices"]]
    return ends[-1]


@pytest.mark.parametrize("stream", [False, True])
async def test_the_tool_that_fits_is_called(engine: VllmEngine, stream: bool) -> None:
    asked = {
        "What is the weather in Paris?": _PARIS,
        "What is 17 * 23?": ("calculate", {"expression": "17 * 23"}),
        "Search for cheap flights.": ("web_search", {"query": "cheap flights"}),
    }
    for question, call in asked.items():
        answer = await _ask(engine, question, stream=stream)
        assert _calls(answer) == [call]
        assert answer.text() == ""


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("choice", ["auto", "required"])
async def test_two_places_are_two_calls(engine: VllmEngine, stream: bool, choice: str) -> None:
    question = "What is the weather in Paris and in Rome?"
    answer = await _ask(engine, question, stream=stream, tool_choice=choice)
    assert _calls(answer) == [_PARIS, _ROME]


async def test_calls_one_at_a_time_are_one_call(engine: VllmEngine) -> None:
    question = "What is the weather in Paris and in Rome?"
    answer = await _ask(engine, question, parallel_tool_calls=False)
    assert _calls(answer) == [_PARIS]


async def test_talk_calls_nothing_and_says_what_it_says_without_tools(engine: VllmEngine) -> None:
    for question in ("What is a gateway?", "Hello"):
        answer = await _ask(engine, question)
        assert _calls(answer) == []
        assert answer.text() == (await _ask(engine, question, tools=None)).text() != ""


async def test_with_no_choice_the_tools_are_not_there(engine: VllmEngine) -> None:
    answer = await _ask(engine, "What is the weather in Paris?", tool_choice="none")
    assert _calls(answer) == []
    assert "tool_call" not in answer.text()
    assert _finish(answer) == "stop"


@pytest.mark.parametrize("question", ["What is the weather in Paris?", "Hello", "Count to 5", "?"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_required_call_is_one_of_the_tools_and_keeps_to_its_schema(
    engine: VllmEngine, question: str, stream: bool
) -> None:
    calls = _calls(await _ask(engine, question, tool_choice="required", stream=stream))
    assert calls
    fields = {"get_weather": "city", "calculate": "expression", "web_search": "query"}
    for name, arguments in calls:
        assert isinstance(arguments[fields[name]], str)
        assert arguments.get("unit", "celsius") in _UNIT["enum"]
    if "Paris" in question:
        assert calls == [_PARIS]


@pytest.mark.parametrize("question", ["What is the weather in Paris?", "Tell me a joke", "2 + 2"])
async def test_a_named_call_is_of_that_tool_and_keeps_to_its_schema(
    engine: VllmEngine, question: str
) -> None:
    answer = await _ask(engine, question, tool_choice=_CHOSEN)
    ((name, arguments),) = _calls(answer, "stop")  # as OpenAI ends what the client chose
    assert name == "get_weather"
    assert set(arguments) <= {"city", "unit"}
    assert ("Paris" in question) == (arguments["city"] == "Paris")


async def test_a_named_call_fills_what_nobody_taught_it(engine: VllmEngine) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    tool = _tool(
        "rate_things", "tags", "where", tags={"type": "array", "items": _STRING}, where=schema
    )
    choice = {"type": "function", "function": {"name": "rate_things"}}
    answer = await _ask(engine, "Tell me about owls", tools=[tool], tool_choice=choice)
    ((name, arguments),) = _calls(answer, "stop")
    assert name == "rate_things"
    assert all(isinstance(tag, str) for tag in arguments["tags"])
    assert isinstance(arguments["where"]["x"], int | float)


def _after(*results: str) -> list[dict[str, Any]]:
    cities = ("Paris", "Rome")[: len(results)]
    calls = [
        {
            "id": f"call_{at}",
            "type": "function",
            "function": {"name": "get_weather", "arguments": json.dumps({"city": city})},
        }
        for at, city in enumerate(cities)
    ]
    question = f"What is the weather in {' and in '.join(cities)}?"
    return [
        {"role": "user", "content": question},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *(
            {"role": "tool", "tool_call_id": f"call_{at}", "content": result}
            for at, result in enumerate(results)
        ),
    ]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_result_becomes_an_answer_that_repeats_it(engine: VllmEngine, stream: bool) -> None:
    sunny = json.dumps({"temperature": 21, "condition": "sunny"})
    answer = await _ask(engine, "", messages=_after(sunny), stream=stream)
    assert _calls(answer) == []
    assert answer.text() == "In Paris it is 21 degrees and sunny."
    rainy = json.dumps({"temperature": 14, "condition": "rainy"})
    answer = await _ask(engine, "", messages=_after(sunny, rainy), stream=stream)
    assert answer.text() == (
        "In Paris it is 21 degrees and sunny. In Rome it is 14 degrees and rainy."
    )


_PERSON = {
    "type": "object",
    "properties": {"name": _STRING, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
_STRANGE = {
    "type": "object",
    "properties": {
        "verdict": {"enum": ["yes", "no"]},
        "explanation": _STRING,
        "scores": {"type": "array", "items": {"type": "number"}},
        "places": {"type": "array", "items": {"type": "object", "properties": {"q_z": _STRING}}},
        "inner": {
            "type": "object",
            "properties": {"flag": {"type": "boolean"}, "note": _STRING},
            "required": ["flag", "note"],
        },
    },
    "required": ["verdict", "explanation", "scores", "places", "inner"],
}


def _format(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "wanted", "schema": schema}}


async def _object(engine: VllmEngine, question: str, response_format: Any, **more: Any) -> Any:
    fields = {"tools": None, "response_format": response_format, "max_tokens": 400} | more
    answer = await _ask(engine, question, **fields)
    assert _finish(answer) == "stop"
    return json.loads(answer.text())


@pytest.mark.parametrize("stream", [False, True])
async def test_a_schema_is_filled_from_the_question(engine: VllmEngine, stream: bool) -> None:
    question = "Answer as JSON with name and age: Alice is 30 years old and lives in Paris."
    said = await _object(engine, question, _format(_PERSON), stream=stream)
    assert said == {"name": "Alice", "age": 30}


@pytest.mark.parametrize(
    "question", ["What is a gateway?", "Tell me a long story", "Is the sea blue?", "Hello", "xyz"]
)
async def test_any_schema_ends(engine: VllmEngine, question: str) -> None:
    said = await _object(engine, question, _format(_STRANGE))
    assert set(_STRANGE["required"]) <= set(said)


@pytest.mark.parametrize(
    "question",
    ["What is a gateway?", "Give me a JSON object with colour red and size 12", "Hello", "xyz"],
)
async def test_any_object_ends(engine: VllmEngine, question: str) -> None:
    assert isinstance(await _object(engine, question, {"type": "json_object"}), dict)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_stop_word_ends_the_answer_before_it(engine: VllmEngine, stream: bool) -> None:
    fields: dict[str, Any] = {"tools": None, "stream": stream}
    whole = (await _ask(engine, "What is a gateway?", **fields)).text()
    answer = await _ask(engine, "What is a gateway?", stop=["streams"], **fields)
    assert answer.text() == whole.split("streams")[0] != whole
    assert _finish(answer) == "stop"
