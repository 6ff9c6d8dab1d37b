"""What a request can do wrong, and that it hurts nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.replica.vllm.engine import VllmEngine
from penstock.replica.vllm.guards.controls import NEUTRAL
from tests.replica.vllm.talking import COMPLETIONS, ON_THE_SHARED_ENGINE, ask, body, chat

pytestmark = ON_THE_SHARED_ENGINE

_LONG = "word " * 20000
_POISON = "((a{0,100}){0,100}){0,100}"
_POISONED = {
    "type": "json_schema",
    "json_schema": {"name": "x", "schema": {"type": "string", "pattern": _POISON}},
}
_ENDLESS = {
    "type": "json_schema",
    "json_schema": {
        "name": "x",
        "schema": {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
    },
}
_COSTLY_TOOL = {
    "type": "function",
    "function": {"name": "f", "parameters": {"type": "string", "pattern": _POISON}},
}
_CALL_IT = {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize(
    ("content", "code", "param"),
    [
        (b"{bad", "invalid_json", ""),
        (b"", "invalid_json", ""),
        (b"[]", "invalid_json", ""),
        (b"{}", "missing_required_parameter", "messages"),
        (body(), "missing_required_parameter", "messages"),
        (body(messages="hello"), "invalid_type", "messages"),
        (chat(temperature="hot"), "invalid_type", "temperature"),
        (chat(temperature=-1), "invalid_value", "temperature"),
        (chat(max_tokens=0), "invalid_value", "max_tokens"),
        (chat(top_p=2), "invalid_value", "top_p"),
        (chat(n=1000), "invalid_value", "n"),
        (chat(_LONG), "context_length_exceeded", "input_text"),
        (chat(logprobs=True, top_logprobs=99), "invalid_value", None),
        (chat(logit_bias={"99999999": 1}), "invalid_value", None),
        (chat(use_beam_search=True), "unsupported_parameter", "use_beam_search"),
        (
            chat(response_format={"type": "json_schema", "json_schema": {"name": "x"}}),
            "invalid_value",
            None,
        ),
        (chat(structured_outputs={"regex": "("}), "invalid_value", None),
        (chat(max_tokens=1_000_000), "invalid_value", "max_tokens"),
        (chat(response_format={"type": "xml"}), "invalid_value", "response_format.type"),
        (chat(response_format=_ENDLESS), "invalid_value", "response_format"),
        (body(messages=[{"content": "x"}]), "missing_required_parameter", "messages.0.role"),
        (
            chat(structured_outputs={"grammar": "root ::= root"}),
            "invalid_value",
            "structured_outputs",
        ),
        (chat(structured_outputs={"regex": _POISON}), "invalid_value", "structured_outputs"),
        (chat(response_format=_POISONED), "invalid_value", "response_format"),
        (chat(tools=[_COSTLY_TOOL], tool_choice=_CALL_IT), "invalid_value", "tools"),
        (chat(stop=["x"] * 65), "invalid_value", "stop"),
        (chat(temperature=1, top_k=2**70), "invalid_value", None),
        (chat(tools=[{"type": "function"}]), "missing_required_parameter", None),
        (chat(chat_template="{{ 1 }}"), "invalid_value", None),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_bad_chat_request_is_refused_in_the_apis_terms(
    engine: VllmEngine, content: bytes, code: str, param: str | None, *, stream: bool
) -> None:
    if stream:
        content = content.replace(b'"model"', b'"stream": true, "model"', 1)
    answer = await ask(engine, content)
    failed = answer.failed
    assert (answer.head, answer.body) == (None, b"")
    assert (failed.status, failed.type, failed.code) == (400, "invalid_request_error", code)
    assert (failed.fault, failed.retryable) == ("client", False)
    assert failed.message
    if param is not None:
        assert failed.param == param


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": _LONG}, "input_text"),
        ({"prompt": ["x"] * 300}, "prompt"),
        ({"prompt": [10**9]}, None),
        ({"prompt": [-1]}, None),
        ({"prompt": "x", "stream_options": {"include_usage": True}}, None),
        ({"prompt": "half a pair: \ud83d"}, None),
        ({"prompt": "x", "bad_words": ["\ud83d"]}, None),
        ({"prompt": ""}, None),
        ({"prompt": "x", "structured_outputs": {"regex": _POISON}}, "structured_outputs"),
        ({"prompt": "x", "response_format": _POISONED}, "response_format"),
        ({"prompt": "x", "stop_token_ids": ["x"]}, None),
        ({"prompt": "x", "allowed_token_ids": [10**9]}, None),
        ({"prompt": "x", "min_tokens": 99, "max_tokens": 2}, None),
    ],
)
async def test_a_bad_completion_request_is_refused(
    engine: VllmEngine, fields: dict[str, Any], param: str | None
) -> None:
    failed = (await ask(engine, body(**fields), COMPLETIONS)).failed
    assert (failed.status, failed.fault, failed.retryable) == (400, "client", False)
    assert param in (None, failed.param)


async def test_another_path_is_not_found(engine: VllmEngine) -> None:
    failed = (await ask(engine, b"{}", "/v1/load_lora_adapter")).failed
    assert (failed.status, failed.fault) == (404, "client")


async def test_engine_controls_of_a_client_change_nothing(engine: VllmEngine) -> None:
    steering: dict[str, Any] = {
        "priority": -5,
        "kv_transfer_params": {"do_remote_prefill": True, "remote_engine_id": "x"},
        "ec_transfer_params": {"x": 1},
        "vllm_xargs": {"session_id": "x"},
        "session_id": "x",
        "stream_interval": 50,
    }
    assert steering.keys() - NEUTRAL.keys() == {"priority"}
    steered = await ask(engine, chat(stream=True, **steering), token_groups=True)
    plain = await ask(engine, chat(stream=True), token_groups=True)
    assert steered.text() == plain.text()
    assert len(steered.groups) > 4


async def test_the_engine_is_as_well_as_before(engine: VllmEngine) -> None:
    await engine.probe()
    assert (await ask(engine, chat())).finished.completion_tokens > 0
