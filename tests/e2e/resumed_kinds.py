"""Streams of every kind that can be resumed, and what of two answers to one request is equal."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "a": {"type": "integer", "minimum": 0, "maximum": 99},
        "b": {"enum": ["x", "y"]},
        "c": {"type": "string", "maxLength": 400, "minLength": 200},
    },
    "required": ["a", "b", "c"],
    "additionalProperties": False,
}
_TOOL: Json = {"type": "function", "function": {"name": "look_up", "parameters": _SCHEMA}}
_FORMAT: Json = {
    "type": "json_schema",
    "json_schema": {"name": "answer", "schema": _SCHEMA, "strict": True},
}
_LONG: Json = {"ignore_eos": True}
_SEEDED: Json = {"temperature": 1.0, "seed": 7}
_GREEDY: Json = {"temperature": 0}
_CHATS: dict[str, Json] = {
    "greedy": _GREEDY | _LONG,
    "repetition penalty": _GREEDY | _LONG | {"repetition_penalty": 1.3},
    "seeded, with penalties": _SEEDED | _LONG | {"frequency_penalty": 0.5, "presence_penalty": 0.4},
    "seeded, of the likeliest": _SEEDED | _LONG | {"top_k": 50, "top_p": 0.9},
    "bias": _GREEDY | _LONG | {"logit_bias": {"100": 3.0, "200": -5}},
    "log probabilities": _SEEDED | _LONG | {"logprobs": True, "top_logprobs": 2},
    "stop strings": _GREEDY | _LONG | {"repetition_penalty": 1.4, "stop": ["tion", "  "]},
    "fewest tokens": _GREEDY | {"min_tokens": 200, "stop": ["e", "a", "t"]},
    "three choices": _SEEDED | _LONG | {"n": 3},
    "a schema": _SEEDED | {"response_format": _FORMAT},
    "a tool": _SEEDED | {"tools": [_TOOL], "tool_choice": "required"},
    "usage all along": _GREEDY
    | _LONG
    | {"stream_options": {"include_usage": True, "continuous_usage_stats": True}},
    "an adapter": _SEEDED | _LONG | {"model": "penstock-mini:pirate"},
}
_WORDS = ("tides", "harbours", "storms", "whales", "charts", "lamps", "rope", "salt", "anchors")


def kinds() -> Iterator[tuple[str, str, Json]]:
    """A name, a path and a body of each kind, for ever, with prompts that differ."""
    chance = random.Random(31)
    while True:
        for name, more in _CHATS.items():
            yield name, "/v1/chat/completions", _chat(_prompt(chance), chance) | more
        prompt = {"prompt": _prompt(chance), **_common(chance), "max_tokens": 300}
        yield "a completion", "/v1/completions", prompt | _SEEDED | _LONG
        yield "its echo", "/v1/completions", prompt | _GREEDY | _LONG | {"echo": True}
        several = {**prompt, "prompt": [_prompt(chance), _prompt(chance)]}
        yield "two prompts", "/v1/completions", several | _SEEDED | _LONG
        response = {"model": "penstock-mini", "stream": True, "temperature": 0}
        yield (
            "a response",
            "/v1/responses",
            response
            | {
                "input": _prompt(chance),
                "max_output_tokens": 300,
            },
        )
        yield (
            "a message",
            "/v1/messages",
            {
                "model": "penstock-mini",
                "stream": True,
                "max_tokens": 300,
                "temperature": 0,
                "messages": [{"role": "user", "content": _prompt(chance)}],
            },
        )


def some(count: int) -> list[tuple[str, str, Json]]:
    """So many, of all kinds in turn."""
    return list(itertools.islice(kinds(), count))


def _prompt(chance: random.Random) -> str:
    words = " ".join(chance.choice(_WORDS) for _ in range(chance.randrange(3, 60)))
    return f"Tell me of {words}."


def _common(chance: random.Random) -> Json:
    return {
        "model": "penstock-mini",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": chance.randrange(250, 450),
    }


def _chat(prompt: str, chance: random.Random) -> Json:
    return {"messages": [{"role": "user", "content": prompt}], **_common(chance)}


def said(stream: bytes) -> Json:
    """What a stream says, however its tokens were put together into events: texts, ends, usage, log
    probabilities and calls, with each id by the order in which it came."""
    told: Json = {"text": {}, "ends": {}, "calls": {}, "logprobs": {}, "usage": None, "kinds": []}
    named: dict[str, str] = {}
    for event in stream.split(b"\n\n"):
        if not event or event.startswith(b":"):
            continue
        data = next((line[6:] for line in event.split(b"\n") if line.startswith(b"data: ")), b"")
        assert data, f"an event without data: {event[:200]!r}"
        if data == b"[DONE]":
            told["kinds"].append("done")
            continue
        _take(json.loads(data), told, named)
    return told


def _take(data: Json, told: Json, named: dict[str, str]) -> None:
    """One event's."""
    assert "error" not in data, data
    if "choices" not in data:
        return _take_event(data, told, named)
    _name(data["id"], named)
    for choice in data["choices"]:
        index = choice["index"]
        delta = choice.get("delta", {"content": choice.get("text")})
        told["text"][index] = told["text"].get(index, "") + (delta.get("content") or "")
        if delta.get("role"):
            told["kinds"].append(("role", index))
        for call in delta.get("tool_calls") or ():
            key = f"{index}.{call['index']}"
            function = call.get("function") or {}
            before = told["calls"].get(key, "")
            told["calls"][key] = (
                before + (function.get("name") or "") + (function.get("arguments") or "")
            )
            if call.get("id"):
                told["kinds"].append(("call", key))
        if choice.get("finish_reason"):
            told["ends"][index] = (choice["finish_reason"], choice.get("stop_reason"))
        _take_logprobs(choice.get("logprobs"), told, index)
    if data.get("usage"):
        told["usage"] = _counts(data["usage"])


def _take_logprobs(logprobs: Json | None, told: Json, index: int) -> None:
    if not logprobs:
        return
    tokens = [each["token"] for each in logprobs.get("content") or ()] or logprobs.get("tokens", [])
    told["logprobs"].setdefault(index, []).extend(tokens)


def _take_event(data: Json, told: Json, named: dict[str, str]) -> None:
    """Of /v1/responses and /v1/messages: deltas are put together, all else is kept as it is."""
    assert data["type"] != "error", data
    if data["type"].endswith("delta") and data["type"] != "message_delta":
        part = data["delta"] if isinstance(data["delta"], str) else data["delta"].get("text", "")
        told["text"][data["type"]] = told["text"].get(data["type"], "") + part
        return
    plain = json.dumps(_lasting(data))
    told["kinds"].append(_IDS.sub(lambda found: _name(found[0], named), plain))


# What differs from run to run: when it was made, and how much of its prompt was cached by then.
_PASSING = re.compile("sequence_number|created|created_at|completed_at|input_tokens.*|cache.*")
_IDS = re.compile(r"(?:resp|msg|rs|fc|call|chatcmpl|cmpl)[-_][0-9a-zA-Z_-]{8,}")


def _lasting(data: Any) -> Any:
    if isinstance(data, list):
        return [_lasting(each) for each in data]
    if not isinstance(data, dict):
        return data
    kept = {name: _lasting(each) for name, each in data.items() if not _PASSING.fullmatch(name)}
    return kept


def _name(found: str, named: dict[str, str]) -> str:
    return named.setdefault(found, f"id {len(named)}")


def _counts(usage: Json) -> Json:
    """What does not depend on what was cached before."""
    return {name: count for name, count in usage.items() if isinstance(count, int)}
