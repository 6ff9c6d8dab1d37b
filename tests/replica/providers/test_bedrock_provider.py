"""The bedrock engine, real boto3 in between, against a local server that speaks Bedrock's wire."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from penstock.replica.providers.provider_engine import ProviderEngine
from penstock.replica.values import Chunk
from tests.fakes import bedrock_server as bedrock
from tests.fakes.bedrock_server import MODEL, REQUEST_ID
from tests.fakes.provider_calls import (
    asked,
    body_of,
    call,
    chat,
    end_of,
    objects_of,
    provider_engine,
)
from tests.fakes.provider_server import ProviderServer

_PNG = b"\x89PNG\r\n\x1a\nnot really"
_WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells it.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


async def test_a_stream_is_chunks_with_usage_reason_and_price(
    bedrock_engine: ProviderEngine,
) -> None:
    options = {"include_usage": True}
    events = await asked(bedrock_engine, chat(stream=True, max_tokens=3, stream_options=options))
    first, *middle, reason, usage = objects_of(events)
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert len(middle) == 3
    assert all(one["choices"][0]["delta"]["content"] for one in middle)
    assert reason["choices"][0]["finish_reason"] == "length"
    assert {one["model"] for one in (first, *middle, reason, usage)} == {"our-name"}
    assert usage["usage"]["prompt_tokens"] == 17
    assert usage["usage"]["prompt_tokens_details"] == {"cached_tokens": 4, "cache_write_tokens": 3}
    end = end_of(events)
    assert (end.prompt_tokens, end.completion_tokens, end.cached_tokens) == (17, 3, 4)
    assert end.cost_nanousd == 10 * 3000 + 3 * 3750 + 4 * 300 + 3 * 15000
    assert end.provider_request_id == REQUEST_ID
    assert sum(event.tokens for event in events if isinstance(event, Chunk)) == 3


async def test_a_unary_answer_is_one_body(bedrock_engine: ProviderEngine) -> None:
    events = await asked(bedrock_engine, chat(max_tokens=2))
    body = json.loads(body_of(events))
    assert body["object"] == "chat.completion"
    assert body["choices"][0]["message"]["content"].count("w") == 2
    assert body["usage"]["completion_tokens"] == end_of(events).completion_tokens == 2


_URL = f"data:image/png;base64,{base64.b64encode(_PNG).decode()}"
_THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
_FUNCTION = {"name": "weather", "arguments": '{"city": "Graz"}'}
_CONVERSATION = [
    {"role": "system", "content": "Be kind."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is it?"},
            {"type": "image_url", "image_url": {"url": _URL}},
        ],
    },
    {
        "role": "assistant",
        "content": "I look.",
        "thinking_blocks": [_THOUGHT],
        "tool_calls": [{"id": "c1", "type": "function", "function": _FUNCTION}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "Sun"},
    {"role": "user", "content": "And then?"},
]


async def test_all_that_a_conversation_holds_arrives_at_bedrock(
    bedrock_engine: ProviderEngine, bedrock_server: ProviderServer
) -> None:
    asked_for = {"temperature": 0.5, "top_p": 0.9, "stop": ["END"], "max_tokens": 4, "top_k": 7}
    choice = {"type": "function", "function": {"name": "weather"}}
    await asked(
        bedrock_engine,
        call(
            "/v1/chat/completions",
            messages=_CONVERSATION,
            tools=[_WEATHER],
            tool_choice=choice,
            **asked_for,
        ),
    )
    sent = bedrock.sent(bedrock_server.asked[-1])
    assert sent.model == MODEL
    assert sent.system == [{"text": "Be kind."}]
    user, assistant, results = sent.messages
    image = {"format": "png", "source": {"bytes": bedrock.blob(_PNG)}}
    assert user == {"role": "user", "content": [{"text": "What is it?"}, {"image": image}]}
    assert assistant["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "sig"}}},
        {"text": "I look."},
        {"toolUse": {"toolUseId": "c1", "name": "weather", "input": {"city": "Graz"}}},
    ]
    assert results["content"] == [
        {"toolResult": {"toolUseId": "c1", "content": [{"text": "Sun"}]}},
        {"text": "And then?"},
    ]
    limits = {"maxTokens": 4, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"]}
    assert sent.inferenceConfig == limits
    assert sent.toolConfig["toolChoice"] == {"tool": {"name": "weather"}}
    (tool,) = sent.toolConfig["tools"]
    schema = _WEATHER["function"]["parameters"]  # type: ignore[index]
    assert tool["toolSpec"]["inputSchema"] == {"json": schema}
    assert sent.additionalModelRequestFields == {"top_k": 7}


async def test_a_schema_for_the_answer_and_a_guardrail_are_passed_on(
    bedrock_server: ProviderServer, aws: Path
) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    form = {"type": "json_schema", "json_schema": {"name": "point", "schema": schema}}
    settings = bedrock.settings(bedrock_server, "guardrail_id=g1", "guardrail_version=2")
    async with provider_engine("bedrock", MODEL, *settings) as bedrock_engine:
        await asked(bedrock_engine, chat(response_format=form, reasoning_effort="low"))
    sent = bedrock.sent(bedrock_server.asked[-1])
    told = sent.outputConfig["textFormat"]["structure"]["jsonSchema"]
    assert (told["name"], json.loads(told["schema"])) == ("point", schema)
    assert sent.outputConfig["effort"] == "low"
    assert sent.guardrailConfig == {"guardrailIdentifier": "g1", "guardrailVersion": "2"}


async def test_calls_of_tools_and_thoughts_come_back_streamed(
    bedrock_engine: ProviderEngine, bedrock_server: ProviderServer
) -> None:
    use = {"toolUse": {"toolUseId": "c1", "name": "weather"}}
    without = {"toolUse": {"toolUseId": "c2", "name": "now"}}

    def delta(index: int, said: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return "contentBlockDelta", {"contentBlockIndex": index, "delta": said}

    bedrock_server.next.append(
        bedrock.streamed(
            ("messageStart", {"role": "assistant"}),
            delta(0, {"reasoningContent": {"text": "Hm"}}),
            delta(0, {"reasoningContent": {"text": "m."}}),
            delta(0, {"reasoningContent": {"signature": "sig"}}),
            ("contentBlockStop", {"contentBlockIndex": 0}),
            ("contentBlockStart", {"contentBlockIndex": 1, "start": use}),
            delta(1, {"toolUse": {"input": '{"city":'}}),
            delta(1, {"toolUse": {"input": ' "Graz"}'}}),
            ("contentBlockStop", {"contentBlockIndex": 1}),
            ("contentBlockStart", {"contentBlockIndex": 2, "start": without}),
            ("contentBlockStop", {"contentBlockIndex": 2}),
            *bedrock.closing("tool_use"),
        )
    )
    objects = objects_of(await asked(bedrock_engine, chat(stream=True)))
    deltas = [one["choices"][0]["delta"] for one in objects]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "Hmm."
    (thoughts,) = [delta["thinking_blocks"] for delta in deltas if "thinking_blocks" in delta]
    assert thoughts == [{"type": "thinking", "thinking": "Hmm.", "signature": "sig"}]
    parts = [part for delta in deltas for part in delta.get("tool_calls", ())]
    calls: dict[int, str] = {}
    for part in parts:
        text = calls.get(part["index"], "")
        calls[part["index"]] = text + part["function"].get("arguments", "")
    assert calls == {0: '{"city": "Graz"}', 1: "{}"}
    assert [part["id"] for part in parts if "id" in part] == ["c1", "c2"]
    assert objects[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_calls_of_tools_and_thoughts_come_back_at_once(
    bedrock_engine: ProviderEngine, bedrock_server: ProviderServer
) -> None:
    blocks: list[dict[str, Any]] = [
        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "sig"}}},
        {"reasoningContent": {"redactedContent": bedrock.blob(b"dark")}},
        {"toolUse": {"toolUseId": "c1", "name": "weather", "input": {"city": "Graz"}}},
    ]
    bedrock_server.next.append(bedrock.unary(blocks, "tool_use"))
    (choice,) = json.loads(body_of(await asked(bedrock_engine, chat())))["choices"]
    message = choice["message"]
    assert choice["finish_reason"] == "tool_calls"
    assert message["content"] is None
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"city": "Graz"}
    assert message["reasoning_content"] == "Hm."
    assert [one["type"] for one in message["thinking_blocks"]] == ["thinking", "redacted_thinking"]


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("stop_sequence", "stop"),
        ("guardrail_intervened", "content_filter"),
        ("content_filtered", "content_filter"),
        ("model_context_window_exceeded", "length"),
    ],
)
async def test_why_it_stopped_is_told_in_openais_words(
    bedrock_engine: ProviderEngine, bedrock_server: ProviderServer, reason: str, told: str
) -> None:
    bedrock_server.next.append(bedrock.streamed(*bedrock.text_events(["No."], reason)))
    events = await asked(bedrock_engine, chat(stream=True))
    assert objects_of(events)[-1]["choices"][0]["finish_reason"] == told
    assert end_of(events).finish_reasons == (told,)
