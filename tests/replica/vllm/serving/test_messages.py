"""/v1/messages and its token count, by the real engine: models left out, errors, controls."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.replica.vllm.engine import VllmEngine
from tests.replica.vllm.inputs import entering_requests
from tests.replica.vllm.talking import (
    MESSAGES,
    ON_THE_SHARED_ENGINE,
    SERVED,
    Answer,
    ask,
    typed_events,
)

pytestmark = ON_THE_SHARED_ENGINE

COUNT = "/v1/messages/count_tokens"
_QUESTION = [{"role": "user", "content": "What is a gateway?"}]


async def _ask(engine: VllmEngine, path: str = MESSAGES, **fields: Any) -> Answer:
    wanted = {"messages": _QUESTION, "max_tokens": 24, "temperature": 0} | fields
    return await ask(engine, json.dumps(wanted).encode(), path)


async def test_a_message_needs_no_model_and_is_answered_by_the_calls(engine: VllmEngine) -> None:
    for named in ({}, {"model": None}, {"model": "another"}):
        answer = await _ask(engine, **named)
        assert answer.json["model"] == SERVED
        assert answer.json["content"][0]["text"]
        assert answer.json["usage"]["output_tokens"] == answer.finished.completion_tokens


async def test_a_streamed_message_says_the_same_and_ends_with_its_stop(engine: VllmEngine) -> None:
    unary = (await _ask(engine)).json
    answer = await _ask(engine, stream=True)
    names, events = typed_events(answer)
    assert (names[0], names[-1]) == ("message_start", "message_stop")
    assert len(names) == answer.events
    text = "".join(event["delta"].get("text", "") for event in events if "delta" in event)
    assert text == unary["content"][0]["text"]
    assert events[-2]["delta"]["stop_reason"] == unary["stop_reason"]
    assert events[-2]["usage"]["output_tokens"] == answer.finished.completion_tokens


async def test_tokens_are_counted_as_a_message_uses_them(engine: VllmEngine) -> None:
    counted = await ask(engine, json.dumps({"messages": _QUESTION}).encode(), COUNT)
    assert counted.json["input_tokens"] == (await _ask(engine)).finished.prompt_tokens


async def test_the_engine_gets_the_calls_controls_and_none_of_the_clients(
    engine: VllmEngine,
) -> None:
    fields = {
        "messages": _QUESTION,
        "max_tokens": 4,
        "priority": -100,
        "cache_salt": "client",
        "kv_transfer_params": {"do_remote_decode": True, "prompt_token_ids": [1]},
        "ec_transfer_params": {"a": 1},
        "vllm_xargs": {"a": 1},
        "session_id": "client",
    }
    content = json.dumps(fields).encode()
    with entering_requests(engine) as seen:
        await ask(engine, content, MESSAGES, priority=7, tenant_salt="tenant")
    (one,) = seen
    assert (one.priority >> 32, one.prompt.get("cache_salt")) == (7, "tenant")
    assert len(one.prompt["prompt_token_ids"]) > 1
    assert not one.params.extra_args
    assert not one.more.get("session_id")


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"tools": [{"name": "t", "input_schema": {"pattern": "(a{9999}){9999}"}}]}, "tools"),
        (
            {"output_config": {"format": {"schema": {"pattern": "(a{9999}){9999}"}}}},
            "output_config",
        ),
        ({"stop_sequences": ["x"] * 65}, "stop_sequences"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tool_choice": {"type": "tool", "name": "t"}, "tools": []}, "tool_choice"),
    ],
)
async def test_what_is_wrong_or_too_costly_is_refused_by_the_messages_own_field(
    engine: VllmEngine, fields: dict[str, Any], parameter: str
) -> None:
    failed = (await _ask(engine, **fields)).failed
    assert (failed.status, failed.fault) == (400, "client")
    assert parameter in failed.param or parameter in failed.message


async def test_no_call_tries_how_the_template_takes_efforts(engine: VllmEngine) -> None:
    assert engine._up is not None
    serving = engine._up.app.state.anthropic_serving_messages  # type: ignore[attr-defined]
    assert serving._disabled_thinking_effort is not None
    assert (await _ask(engine, thinking={"type": "disabled"})).finished


def _with_calls(finish: str, *arguments: str) -> Any:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionResponse

    calls = [{"function": {"name": "get_weather", "arguments": one}} for one in arguments]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 1, "total_tokens": 2}
    return ChatCompletionResponse.model_validate(
        {"model": "m", "choices": [choice], "usage": usage}
    )


@pytest.mark.parametrize(
    ("finish", "arguments", "told", "text"),
    [
        ("length", ['{"city": "Oslo"}', '{"ci'], ['{"city": "Oslo"}', "{}"], None),
        ("tool_calls", [""], ["{}"], None),
        ("stop", ['{"city": "Os'], [], '{"city": "Os'),
        ("tool_calls", ['{"city": "Oslo"}', "[1]"], ['{"city": "Oslo"}'], "[1]"),
    ],
)
async def test_arguments_that_are_no_object_are_told_so_that_nobody_runs_them(
    finish: str, arguments: list[str], told: list[str], text: str | None
) -> None:
    from penstock.replica.vllm.serving.messages import with_readable_calls

    choice = with_readable_calls(_with_calls(finish, *arguments)).choices[0]
    assert [call.function.arguments for call in choice.message.tool_calls] == told
    assert choice.message.content == text
    assert choice.finish_reason == finish


async def test_a_call_of_a_tool_that_the_token_limit_cuts_short_is_a_message() -> None:
    from vllm.entrypoints.anthropic.serving import AnthropicServingMessages

    from penstock.replica.vllm.serving.messages import with_readable_calls

    answer = with_readable_calls(_with_calls("length", '{"ci'))
    message = AnthropicServingMessages.messages_full_converter(None, answer)
    assert message.stop_reason == "max_tokens"
    (block,) = message.content
    assert (block.type, block.name, block.input) == ("tool_use", "get_weather", {})


async def test_thinking_is_left_out_for_a_model_that_does_not_reason(engine: VllmEngine) -> None:
    thinking = {"type": "enabled", "budget_tokens": 1024}
    plain = (await _ask(engine, max_tokens=1100)).json
    answer = await _ask(engine, max_tokens=1100, thinking=thinking)
    assert answer.json["content"] == plain["content"]


async def test_answers_and_calls_are_named_as_anthropics(engine: VllmEngine) -> None:
    tool = {"name": "look", "input_schema": {"type": "object", "properties": {}}}
    demanded: dict[str, Any] = {"tools": [tool], "tool_choice": {"type": "any"}, "max_tokens": 64}
    unary = (await _ask(engine, **demanded)).json
    _, events = typed_events(await _ask(engine, stream=True, **demanded))
    streamed = events[0]["message"]
    begun = [one["content_block"] for one in events if one["type"] == "content_block_start"]
    for answer, blocks in ((unary, unary["content"]), (streamed, begun)):
        assert answer["id"].startswith("msg_")
        assert [one["id"][:6] for one in blocks if one["type"] == "tool_use"] == ["toolu_"]


@pytest.mark.parametrize(
    "source",
    [
        {"type": "text", "media_type": "text/plain", "data": "It passes water."},
        {"type": "content", "content": "It passes water."},
        {"type": "content", "content": [{"type": "text", "text": "It passes water."}]},
    ],
)
async def test_a_document_of_text_is_read_as_that_text(
    engine: VllmEngine, source: dict[str, Any]
) -> None:
    document = {"type": "document", "title": "A penstock", "source": source}
    text = {"type": "text", "text": "A penstock\nIt passes water."}
    said = [
        (await _ask(engine, messages=[{"role": "user", "content": [block]}])).json
        for block in (document, text)
    ]
    assert said[0]["content"] == said[1]["content"]
    assert said[0]["usage"]["input_tokens"] == said[1]["usage"]["input_tokens"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "not served"),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {"type": "document", "source": {"type": "base64", "data": "JVBE"}}
                        ],
                    }
                ]
            },
            "documents of type 'base64'",
        ),
    ],
)
async def test_what_would_be_left_out_of_account_is_refused_by_name(
    engine: VllmEngine, fields: dict[str, Any], words: str
) -> None:
    failed = (await _ask(engine, **fields)).failed
    assert failed.status == 400
    assert words in failed.message
