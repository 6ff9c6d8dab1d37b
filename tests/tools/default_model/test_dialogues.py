"""Dialogues with tools and JSON: what the grammar promises, and that the template says the same."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

pytest.importorskip("transformers")

from hypothesis import given
from hypothesis import strategies as st

from tests.tools.default_model.asking import TOKENIZER, as_messages, definitions, rendered
from tools.default_model.grammar import Dialogue, Heard, Said, lesson
from tools.default_model.grammar.answers_in_json import json_dialogue
from tools.default_model.grammar.domains import DOMAINS
from tools.default_model.grammar.tools import calls_of, tool_dialogue
from tools.default_model.tokens import TAGS, Encoder

_KINDS = {"string": str, "integer": int, "number": int, "boolean": bool}
_ASK = [{"role": "user", "content": "Hello"}]


@given(st.integers())
def test_training_sees_what_the_template_renders(seed: int) -> None:
    dialogue = lesson(Random(seed))
    example = Encoder(TOKENIZER).dialogue(dialogue)
    text = rendered(as_messages(dialogue), definitions(dialogue))
    assert TOKENIZER.encode(text) == list(example.ids)
    assert TOKENIZER.decode(example.ids) == text


@given(st.integers())
def test_arguments_as_text_read_like_an_object(seed: int) -> None:
    dialogue = tool_dialogue(Random(seed))
    messages = as_messages(dialogue)
    before = rendered(messages, definitions(dialogue))
    for message in messages:
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.dumps(
                call["function"]["arguments"], ensure_ascii=False
            )
    assert rendered(messages, definitions(dialogue)) == before


@given(st.integers())
def test_a_call_keeps_to_the_schema_of_its_tool(seed: int) -> None:
    dialogue = tool_dialogue(Random(seed))
    tools = {tool.name: tool for tool in dialogue.tools}
    for call in calls_of(dialogue):
        fields = {one.name: one for one in tools[call.name].fields}
        assert {name for name, one in fields.items() if one.required} <= set(call.arguments)
        for name, value in call.arguments.items():
            assert isinstance(value, _KINDS[fields[name].kind])
            assert not fields[name].options or value in fields[name].options
        assert call.answer


@pytest.mark.parametrize("name", ["search", "time"])
@given(st.integers())
def test_what_goes_into_a_call_stands_in_the_question(name: str, seed: int) -> None:
    rng = Random(seed)
    task = DOMAINS[name].task(rng, DOMAINS[name].tool(rng))
    assert all(value in task.question for call in task.calls for value in call.arguments.values())


@given(st.integers())
def test_an_answer_in_json_is_json(seed: int) -> None:
    dialogue = json_dialogue(Random(seed))
    last = dialogue.messages[-1]
    assert isinstance(last, Said)
    json.loads(last.text())
    assert any(learnt for _, learnt in last.written())


def test_a_grammars_part_of_an_answer_is_not_learnt() -> None:
    said = Said((('{"name":', False), ('"Ada"', True), ("}", True)))
    example = Encoder(TOKENIZER).dialogue(Dialogue((Heard("user", "Ada came"), said)))
    learnt = [token for token, one in zip(example.ids, example.said, strict=True) if one]
    assert TOKENIZER.decode(learnt) == '"Ada"}<|end|>'


def test_the_tags_of_a_call_are_one_token_each_and_outlive_decoding() -> None:
    for tag in TAGS:
        (token,) = TOKENIZER.encode(tag)
        assert TOKENIZER.decode([token], skip_special_tokens=True) == tag


def _offered(function: Any) -> str:
    text = rendered(_ASK, [{"type": "function", "function": function}])
    return text.removeprefix("<s><|tools|>").removesuffix("<|user|>Hello")


@pytest.mark.parametrize(
    ("parameters", "written"),
    [
        (None, "f()"),
        ({}, "f()"),
        ({"type": "object"}, "f()"),
        ({"properties": None, "required": None}, "f()"),
        ({"properties": {"items": {"type": "string"}}, "required": ["items"]}, "f(items:string)"),
        ({"properties": {"keys": {"type": ["string", "null"]}}}, "f(keys?:string|null)"),
        ({"properties": {"a": {"enum": [1, 2.5, True]}}}, "f(a?:1|2.5|True)"),
        ({"properties": {"a": True, "b": {"anyOf": [{}]}}}, "f(a?:any,b?:any)"),
        ({"properties": {"a": {"type": "object", "properties": {"b": {}}}}}, "f(a?:object)"),
        ({"properties": {"a": {"type": 5, "enum": None}}, "required": 7}, "f(a?:any)"),
    ],
)
def test_a_tool_is_one_line_whatever_its_schema(parameters: Any, written: str) -> None:
    assert _offered({"name": "f", "parameters": parameters, "strict": True}) == written


def test_a_tool_without_parameters_or_envelope_is_offered_too() -> None:
    assert _offered({"name": "f"}) == "f()"
    assert rendered(_ASK, [{"name": "f"}, {"name": "g"}]).startswith("<s><|tools|>f()\ng()<|user|>")


@pytest.mark.parametrize("arguments", [None, "", {}, "{}"])
def test_a_call_without_arguments_has_an_empty_object(arguments: Any) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    assert rendered([{"role": "assistant", "content": None, "tool_calls": [call]}]) == (
        '<s><|assistant|><tool_call>\n{"name": "f", "arguments": {}}\n</tool_call><|end|>'
    )


@pytest.mark.parametrize("calls", [None, [], "calls", 5])
def test_calls_that_are_none_say_nothing(calls: Any) -> None:
    assert rendered([{"role": "assistant", "content": "Hi", "tool_calls": calls}]) == (
        "<s><|assistant|>Hi<|end|>"
    )


def test_a_result_is_heard_from_the_tool_in_its_own_case() -> None:
    parts = [{"type": "text", "text": "21 C"}]
    for content in ("21 C", parts):
        assert rendered([{"role": "tool", "content": content}]) == "<s><|tool|>21 C"
    assert rendered([{"role": "function", "name": "f", "content": "X"}]) == "<s><|tool|>X"
