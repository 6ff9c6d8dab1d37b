"""What rude clients send: each kind as requests to an OpenAI-compatible server. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

CHAT, RESPONSES, COMPLETIONS = "/v1/chat/completions", "/v1/responses", "/v1/completions"


@dataclass(frozen=True, slots=True)
class Rude:
    """One request. `sent`: the part of its body that is sent, whatever its length says."""

    path: str
    body: bytes
    sent: float = 1.0


def large(model: str, number: int) -> Rude:
    """Bodies of many elements, in turns: far too many, and as many as are taken by default."""
    part = {"type": "text", "text": "a"}
    item = {"role": "user", "content": "a"}
    tool = {"type": "function", "function": {"name": "look", "parameters": _schema(8, number)}}
    asked = [{"role": "user", "content": "Hi"}]
    shapes: Sequence[tuple[str, dict[str, Any]]] = (
        (CHAT, {"messages": [{"role": "user", "content": [part] * 400_000}]}),
        (CHAT, {"messages": [{"role": "user", "content": [part] * 2000}]}),
        (RESPONSES, {"input": [item] * 2000}),
        (COMPLETIONS, {"prompt": [300 + at % 1000 for at in range(140_000)]}),
        (CHAT, {"messages": asked, "tools": [tool] * 250, "max_tokens": 1}),
    )
    path, fields = shapes[number % len(shapes)]
    return Rude(path, _json(model, fields))


def tokenize(model: str, number: int) -> Rude:
    """Texts of 900 KB, of which all tokens are wanted."""
    return Rude("/tokenize", _json(model, {"prompt": _text(900_000, number)}))


def trim(model: str, number: int) -> Rude:
    """Conversations of 870 KB, for a deployment that leaves out what is too much."""
    turns = [
        {"role": ("user", "assistant")[at % 2], "content": _text(2_900, number + at)}
        for at in range(300)
    ]
    return Rude(CHAT, _json(model, {"messages": [*turns, turns[0]], "max_tokens": 4}))


def half(model: str, number: int) -> Rude:
    """Half of a body of 1 MB, and then nothing."""
    return Rude(COMPLETIONS, _json(model, {"prompt": _text(1_000_000, number)}), sent=0.5)


def grammar(model: str, number: int) -> Rude:
    """Schemas that take long to compile, none of them known, and some that are refused."""
    optional = 100 if number % 4 else 300
    wanted = {"name": "bomb", "schema": _schema(optional, number)}
    fields = {
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 16,
        "response_format": {"type": "json_schema", "json_schema": wanted},
    }
    return Rude(CHAT, _json(model, fields))


def sequences(model: str, number: int) -> Rude:
    """Sixteen prompts in one call, with sixteen choices each."""
    prompts = [_text(40, number + at) for at in range(16)]
    fields = {"prompt": prompts, "n": 16, "temperature": 1, "max_tokens": 64, "ignore_eos": True}
    return Rude(COMPLETIONS, _json(model, fields))


KINDS: dict[str, Callable[[str, int], Rude]] = {
    each.__name__: each for each in (large, tokenize, trim, half, grammar, sequences)
}
"""By name."""


def _schema(optional: int, number: int) -> dict[str, Any]:
    names = [f"field_{number}_{at}" for at in range(optional)]
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}}


def _text(size: int, number: int) -> str:
    sentence = f"Ship {number} passes lock {number % 7} at dawn, its keeper counts the boats. "
    return (sentence * (size // len(sentence) + 1))[:size]


def _json(model: str, fields: dict[str, Any]) -> bytes:
    return json.dumps({"model": model, **fields}, separators=(",", ":")).encode()
