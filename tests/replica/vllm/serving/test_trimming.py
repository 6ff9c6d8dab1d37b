"""Conversations beyond their budget, by the real engine: what is left out, and what stays."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from typing import Any

import pytest

from penstock.replica.vllm.engine import VllmEngine
from tests.replica.vllm.inputs import entering_requests
from tests.replica.vllm.talking import (
    CHAT,
    MESSAGES,
    ON_THE_SHARED_ENGINE,
    RESPONSES,
    Answer,
    ask,
    body,
)

pytestmark = ON_THE_SHARED_ENGINE

_PIN = {"penstock": {"pin": True}}
_SYSTEM = {"role": "system", "content": "You are brief."}
_NEWEST = {"role": "user", "content": "What is a gateway?"}
_WEATHER = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"properties": {"city": {"type": "string"}}}},
}


def _said(role: str, words: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": words, **more}


def _turn(number: int, **more: Any) -> list[dict[str, Any]]:
    return [
        _said("user", f"What is {number} times {number}? " * 10, **more),
        _said("assistant", f"It is {number * number}. " * 10),
    ]


def _called(city: str) -> list[dict[str, Any]]:
    function = {"name": "weather", "arguments": json.dumps({"city": city})}
    call = {"id": "call_1", "type": "function", "function": function}
    return [
        _said("user", f"How is the weather in {city}? " * 10),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Rain, and wind from the west."},
    ]


async def _chat(engine: VllmEngine, messages: list[Any], **more: Any) -> Answer:
    return await ask(engine, body(messages=messages, tools=[_WEATHER]), CHAT, **more)


async def _prompt(engine: VllmEngine, asked: Awaitable[Answer]) -> tuple[Answer, list[int]]:
    """An answer, and the prompt that entered the engine for it."""
    with entering_requests(engine) as seen:
        answer = await asked
    (one,) = seen
    return answer, one.prompt["prompt_token_ids"]


async def _same(engine: VllmEngine, trimmed: Awaitable[Answer], alone: Awaitable[Answer]) -> Answer:
    """The first answer, which has to be one to the same prompt as the other."""
    answer, prompt = await _prompt(engine, trimmed)
    assert prompt == (await _prompt(engine, alone))[1]
    return answer


async def test_the_oldest_turns_go_and_the_answer_is_that_to_the_rest(engine: VllmEngine) -> None:
    messages = [_SYSTEM, *_turn(2), *_called("Rome"), *_turn(3), *_called("Paris"), _NEWEST]
    whole = (await _chat(engine, messages)).finished.prompt_tokens
    for kept in ([0, *range(3, 12)], [0, *range(6, 12)], [0, *range(8, 12)], [0, 11]):
        wanted = [messages[place] for place in kept]
        most = (await _chat(engine, wanted)).finished.prompt_tokens
        trimmed = _chat(engine, messages, trim=True, max_prompt_tokens=most)
        answer = await _same(engine, trimmed, _chat(engine, wanted))
        assert answer.head is not None
        assert answer.head.trimmed_messages == 12 - len(kept)
        assert answer.head.trimmed_tokens == whole - most


async def test_one_token_less_costs_one_turn_more(engine: VllmEngine) -> None:
    messages = [*_turn(2), *_turn(3), *_turn(4), _NEWEST]
    most = (await _chat(engine, messages[2:])).finished.prompt_tokens
    trimmed = _chat(engine, messages, trim=True, max_prompt_tokens=most - 1)
    await _same(engine, trimmed, _chat(engine, messages[4:]))


async def test_beyond_the_context_there_stays_what_leaves_room_for_the_answer(
    engine: VllmEngine,
) -> None:
    messages = [_SYSTEM, *(one for number in range(200) for one in _turn(number)), _NEWEST]
    refused = await ask(engine, body(messages=messages))
    assert refused.failed.code == "context_length_exceeded"
    for asked in (24, 2000):
        trimmed = ask(engine, body(messages=messages, max_tokens=asked), trim=True)
        answer, prompt = await _prompt(engine, trimmed)
        assert answer.head is not None
        assert 0 <= 4096 - asked - len(prompt) < 200
        left = len(messages) - answer.head.trimmed_messages
        kept = ask(engine, body(messages=[_SYSTEM, *messages[1 - left :]], max_tokens=asked))
        assert prompt == (await _prompt(engine, kept))[1]


async def test_pinned_messages_stay_and_no_mark_is_seen(engine: VllmEngine) -> None:
    messages = [*_turn(2, **_PIN), *_turn(3), *_turn(4, penstock="odd"), _NEWEST]
    kept = [_turn(2)[0], *_turn(4), _NEWEST]
    most = (await _chat(engine, kept)).finished.prompt_tokens
    trimmed = _chat(engine, messages, trim=True, max_prompt_tokens=most)
    await _same(engine, trimmed, _chat(engine, kept))
    plain = [*_turn(2), *_turn(3), *_turn(4), _NEWEST]
    await _same(engine, _chat(engine, messages), _chat(engine, plain))


async def test_what_cannot_fit_is_refused_as_without_trimming(engine: VllmEngine) -> None:
    long = [*_turn(1), _said("user", "word " * 5000)]
    for messages, most in (([*_turn(1), _NEWEST], 5), (long, 0), (long, 50)):
        failures = [
            (await _chat(engine, messages, trim=trim, max_prompt_tokens=most)).failed
            for trim in (False, True)
        ]
        assert failures[0] == failures[1]
        assert failures[0].status == 400
        assert failures[0].code in {"token_budget_exceeded", "context_length_exceeded"}


async def test_a_streamed_answer_tells_it_with_its_head(engine: VllmEngine) -> None:
    messages = [*_turn(2), _NEWEST]
    unary = await ask(engine, body(messages=messages), trim=True, max_prompt_tokens=40)
    streamed = await ask(
        engine, body(messages=messages, stream=True), trim=True, max_prompt_tokens=40
    )
    assert unary.head is not None
    assert streamed.head is not None
    assert streamed.head.trimmed_messages == unary.head.trimmed_messages == 2
    assert streamed.head.trimmed_tokens == unary.head.trimmed_tokens > 0
    assert len(streamed.sse) > 2


async def _message(engine: VllmEngine, messages: list[Any], **more: Any) -> Answer:
    fields = {"system": "You are brief.", "messages": messages, "max_tokens": 24, "temperature": 0}
    return await ask(engine, json.dumps(fields).encode(), MESSAGES, **more)


async def test_messages_lose_turns_too_and_results_stay_with_their_calls(
    engine: VllmEngine,
) -> None:
    use = {"type": "tool_use", "id": "t", "name": "weather", "input": {"city": "Rome"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "Rain."}
    called = [
        _said("user", "How is the weather in Rome? " * 10),
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
        _said("assistant", "It rains."),
    ]
    messages = [*_turn(2, **_PIN), *_turn(3), *called, *_turn(4), _NEWEST]
    for kept in (
        [_turn(2)[0], *called, *_turn(4), _NEWEST],
        [_turn(2)[0], *_turn(4), _NEWEST],
    ):
        most = (await _message(engine, kept)).finished.prompt_tokens
        trimmed = _message(engine, messages, trim=True, max_prompt_tokens=most)
        answer = await _same(engine, trimmed, _message(engine, kept))
        assert answer.head is not None
        assert answer.head.trimmed_messages == len(messages) - len(kept)


async def _respond(engine: VllmEngine, items: Any, **more: Any) -> Answer:
    fields = {"instructions": "Be brief.", "input": items, "temperature": 0}
    content = json.dumps(fields | {"max_output_tokens": 24}).encode()
    return await ask(engine, content, RESPONSES, **more)


@pytest.mark.parametrize("pinned", [False, True])
async def test_responses_lose_turns_too(engine: VllmEngine, pinned: bool) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": "Rain. " * 10}
    asked = _said("user", "How is the weather? " * 10)
    mark = _PIN if pinned else {}
    items = [*_turn(2), asked, {**call, **mark}, result, *_turn(3), _NEWEST]
    kept = [call, result, *_turn(3), _NEWEST] if pinned else [*_turn(3), _NEWEST]
    most = (await _respond(engine, kept)).finished.prompt_tokens
    trimmed = _respond(engine, items, trim=True, max_prompt_tokens=most)
    answer = await _same(engine, trimmed, _respond(engine, kept))
    assert answer.head is not None
    assert answer.head.trimmed_messages == (3 if pinned else 5)
    plain = await _respond(engine, "What is a gateway?", trim=True)
    assert plain.head is not None
    assert plain.head.trimmed_messages == 0


async def test_tokens_are_counted_of_all_messages_also_where_they_would_be_trimmed(
    engine: VllmEngine,
) -> None:
    messages = [*_turn(2), _NEWEST]
    count = [
        (
            await ask(
                engine,
                json.dumps({"messages": messages}).encode(),
                "/v1/messages/count_tokens",
                trim=trim,
                max_prompt_tokens=10,
            )
        ).json
        for trim in (False, True)
    ]
    assert count[0] == count[1]
