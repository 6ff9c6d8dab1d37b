"""Requests of every kind that can be gone on with, for penstock-mini."""

from __future__ import annotations

import json
from typing import Any, Final

from penstock.replica.values import Call
from tests.replica.vllm.talking import CHAT, COMPLETIONS, MESSAGES, RESPONSES, SERVED

_STRING = {"type": "string"}
_PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 99},
        "unit": {"enum": ["celsius", "fahrenheit"]},
    },
    "required": ["name", "age", "unit"],
    "additionalProperties": False,
}
_WEATHER = {"type": "object", "properties": {"city": _STRING}, "required": ["city"]}
_TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": _WEATHER}}
_FLAT_TOOL = {"type": "function", "name": "get_weather", "parameters": _WEATHER}
_ANTHROPIC_TOOL = {"name": "get_weather", "input_schema": _WEATHER}
_SCHEMA = {"type": "json_schema", "json_schema": {"name": "p", "schema": _PERSON, "strict": True}}
_ASKED = "What is the weather in Paris?"
_HOT: Final[dict[str, Any]] = {"temperature": 1.0, "seed": 5}


def _chat(question: str = "What is a gateway?", **fields: Any) -> tuple[str, dict[str, Any]]:
    messages = [{"role": "user", "content": question}]
    usage = {"stream_options": {"include_usage": True}}
    return CHAT, {"messages": messages, "temperature": 0, "max_tokens": 30} | usage | fields


def _completion(prompt: Any = "Count from 1.", **fields: Any) -> tuple[str, dict[str, Any]]:
    usage = {"stream_options": {"include_usage": True}}
    told = {"prompt": prompt, "temperature": 0, "max_tokens": 24, "ignore_eos": True}
    return COMPLETIONS, told | usage | fields


def _response(question: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return RESPONSES, {"input": question, "temperature": 0, "max_output_tokens": 40} | fields


def _message(question: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    messages = [{"role": "user", "content": question}]
    return MESSAGES, {"messages": messages, "temperature": 0, "max_tokens": 40} | fields


KINDS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "greedy": _chat(),
    "long": _chat("Count from 1.", max_tokens=120, ignore_eos=True),
    "long prompt": _chat("Tell me about the Rhine. " * 60),
    "continuous usage": _chat(
        stream_options={"include_usage": True, "continuous_usage_stats": True}
    ),
    "logprobs": _chat(logprobs=True, top_logprobs=3),
    "min_tokens": _chat(min_tokens=25, stop=["e", "a", "t"]),
    "stop string": _chat(stop=["request", "zzz"]),
    "stop string included": _chat(stop=["request"], include_stop_str_in_output=True),
    "repetition penalty": _chat(repetition_penalty=1.3),
    "penalties": _chat(frequency_penalty=1.5, presence_penalty=0.7),
    "logit_bias": _chat(logit_bias={"100": 3.0, "200": -5}),
    "seeded": _chat(**_HOT),
    "seeded top k and p": _chat(temperature=0.8, top_k=50, top_p=0.9, seed=11),
    "min_p": _chat(temperature=0.9, min_p=0.01, seed=2, bad_words=["is"]),
    "three choices": _chat(n=3, **_HOT, max_tokens=16),
    "choices with logprobs": _chat(n=2, **_HOT, max_tokens=16, logprobs=True),
    "schema": _chat("Who?", **_HOT, max_tokens=60, response_format=_SCHEMA),
    "json object": _chat("Who?", **_HOT, response_format={"type": "json_object"}),
    "regex": _chat("When?", **_HOT, structured_outputs={"regex": "[0-9]{4}-[0-9]{2}-[0-9]{2}"}),
    "grammar": _chat(
        "Sum?", **_HOT, structured_outputs={"grammar": 'root ::= ("1" | "2") ("+" root)?'}
    ),
    "choice": _chat("Who?", **_HOT, structured_outputs={"choice": ["the first", "the second"]}),
    "tool auto": _chat(_ASKED, tools=[_TOOL]),
    "tool required": _chat(_ASKED, tools=[_TOOL], tool_choice="required", **_HOT),
    "tool named": _chat(
        _ASKED, tools=[_TOOL], tool_choice={"type": "function", "function": {"name": "get_weather"}}
    ),
    "token ids": _chat(return_token_ids=True),
    "completion": _completion(),
    "completion echo": _completion(echo=True),
    "completion logprobs": _completion(logprobs=2, n=2, **_HOT),
    "prompts": _completion(["Count from 1.", "Hello", "What is a gateway?"], n=2, **_HOT),
    "prompts with logprobs": _completion(["Count from 1.", "Hello"], logprobs=1),
    "response": _response("What is a gateway?"),
    "response tool": _response(_ASKED, tools=[_FLAT_TOOL], tool_choice="required"),
    "response schema": _response(
        "Who?",
        text={"format": {"type": "json_schema", "name": "p", "schema": _PERSON, "strict": True}},
    ),
    "message": _message("What is a gateway?"),
    "message tool": _message(_ASKED, tools=[_ANTHROPIC_TOOL], tool_choice={"type": "any"}),
    "message stop": _message("What is a gateway?", stop_sequences=["request"]),
}
"""By name: path and body, all of them streamed."""

REASONING: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "reasoning": _chat(_ASKED, tools=[_TOOL], tool_choice="none"),
    "reasoning before a schema": _chat(
        _ASKED, tools=[_TOOL], tool_choice="none", max_tokens=80, response_format=_SCHEMA
    ),
    "response reasoning": _response(_ASKED, tools=[_FLAT_TOOL], tool_choice="none"),
}
"""Those that a model thinks about first."""


def call(kind: str, request_id: str, **more: Any) -> Call:
    """A call of a kind."""
    path, fields = (KINDS | REASONING)[kind]
    body = json.dumps({"model": "any", "stream": True} | fields).encode()
    return Call(request_id, path, body, SERVED, **more)
