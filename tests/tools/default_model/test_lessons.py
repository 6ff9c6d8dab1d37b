"""What the shipped model does with tools and JSON that it was not trained on, greedily."""

from __future__ import annotations

import json
from functools import cache
from random import Random
from typing import Any

import pytest

from tests.tools.default_model.asking import (
    END,
    as_messages,
    completed,
    definitions,
    rendered,
)
from tools.default_model.grammar import Dialogue, Heard, Said, lesson

_SHARES = {  # kind: the share of unseen dialogues that end word for word as the grammar would
    "one call": 0.8,
    "several calls": 0.6,
    "result": 0.8,
    "talk": 0.8,
    "json": 0.65,
}
_EACH = 30


def kind_of(dialogue: Dialogue) -> str:
    """What the last message is; empty for those that a grammar has to begin."""
    before, last = dialogue.messages[-2:] if dialogue.messages[1:] else (None, Said())
    assert isinstance(last, Said)
    if before is None or not all(learnt for _, learnt in last.written()):
        return ""
    if last.calls:
        return "one call" if len(last.calls) == 1 else "several calls"
    if not dialogue.tools:
        return "json" if last.text().startswith("{") else ""
    return "result" if isinstance(before, Heard) and before.role == "tool" else "talk"


def prompt_of(dialogue: Dialogue) -> str:
    """The dialogue without its last message."""
    return rendered(as_messages(dialogue)[:-1], definitions(dialogue), add_generation_prompt=True)


@cache
def unseen() -> dict[str, list[Dialogue]]:
    """Dialogues of each kind that the model was not trained on."""
    rng = Random("not in the training")
    found: dict[str, list[Dialogue]] = {kind: [] for kind in _SHARES}
    while min(map(len, found.values())) < _EACH:
        dialogue = lesson(rng)
        kind = kind_of(dialogue)
        if kind and len(found[kind]) < _EACH and len(prompt_of(dialogue)) < 900:
            found[kind].append(dialogue)
    return found


@pytest.mark.parametrize("kind", _SHARES)
def test_most_unseen_dialogues_end_as_the_grammar_would(kind: str) -> None:
    dialogues = unseen()[kind]
    texts = completed([prompt_of(dialogue) for dialogue in dialogues], limit=200)
    wrong = [
        (text, wanted)
        for text, wanted in zip(texts, map(_last, dialogues), strict=True)
        if text != wanted + END
    ]
    assert len(wrong) <= (1 - _SHARES[kind]) * len(dialogues), wrong


def _last(dialogue: Dialogue) -> str:
    last = dialogue.messages[-1]
    assert isinstance(last, Said)
    return last.text()


WEATHER = {
    "name": "get_weather",
    "description": "Get the current weather for a city.",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "The city, e.g. Paris"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        },
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}
CALCULATE = {
    "name": "calculate",
    "parameters": {
        "type": "object",
        "properties": {"expression": {"type": "string"}},
        "required": ["expression"],
    },
}
SEARCH = {
    "name": "web_search",
    "parameters": {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
    },
}
TOOLS = [{"type": "function", "function": one} for one in (WEATHER, CALCULATE, SEARCH)]


def _called(question: str) -> list[dict[str, Any]]:
    prompt = rendered([{"role": "user", "content": question}], TOOLS, add_generation_prompt=True)
    (text,) = completed([prompt])
    assert text.endswith(END)
    blocks = text.removesuffix(END).split("<tool_call>\n")[1:]
    return [json.loads(block.removesuffix("\n</tool_call>")) for block in blocks]


@pytest.mark.parametrize(
    ("question", "name", "arguments"),
    [
        ("What is the weather in Paris?", "get_weather", {"city": "Paris"}),
        ("How warm is it in Tokyo?", "get_weather", {"city": "Tokyo"}),
        ("What is 17 * 23?", "calculate", {"expression": "17 * 23"}),
        ("Search for cheap flights.", "web_search", {"query": "cheap flights"}),
    ],
)
def test_the_tool_that_fits_is_called(question: str, name: str, arguments: dict[str, str]) -> None:
    assert _called(question) == [{"name": name, "arguments": arguments}]


def test_two_places_are_two_calls() -> None:
    calls = _called("What is the weather in Paris and in Rome?")
    assert [call["arguments"]["city"] for call in calls] == ["Paris", "Rome"]


@pytest.mark.parametrize("question", ["What is a gateway?", "Hello", "Tell me a joke"])
def test_talk_calls_nothing(question: str) -> None:
    assert _called(question) == []
