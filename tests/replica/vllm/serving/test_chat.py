"""A choice among allowed tools at /v1/chat/completions, by the real engine."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.replica.vllm.engine import VllmEngine
from tests.replica.vllm.talking import CHAT, ON_THE_SHARED_ENGINE, Answer, ask

pytestmark = ON_THE_SHARED_ENGINE


def _tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


async def _ask(engine: VllmEngine, *allowed: str, mode: str) -> Answer:
    choice = {"mode": mode, "tools": [_tool(name) for name in allowed]}
    fields = {
        "messages": [{"role": "user", "content": "Look it up."}],
        "tools": [_tool("look"), _tool("send")],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": choice},
        "max_tokens": 64,
        "temperature": 0,
    }
    return await ask(engine, json.dumps(fields).encode(), CHAT)


@pytest.mark.parametrize("name", ["look", "send"])
async def test_a_required_call_is_of_the_allowed_tool(engine: VllmEngine, name: str) -> None:
    answer = (await _ask(engine, name, mode="required")).json
    calls = answer["choices"][0]["message"]["tool_calls"]
    assert {call["function"]["name"] for call in calls} == {name}


@pytest.mark.parametrize(
    ("allowed", "mode", "words"),
    [("drop", "auto", "names ['drop'], which tools has not"), ("look", "some", "mode is 'some'")],
)
async def test_a_choice_that_cannot_be_is_refused_by_name(
    engine: VllmEngine, allowed: str, mode: str, words: str
) -> None:
    failed = (await _ask(engine, allowed, mode=mode)).failed
    assert failed.status == 400
    assert words in failed.message
