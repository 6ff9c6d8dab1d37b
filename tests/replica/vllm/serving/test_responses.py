"""/v1/responses by the real engine: stateless, numbered without gaps, ended as the API ends it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.replica.vllm.engine import VllmEngine
from tests.replica.vllm.inputs import entering_requests
from tests.replica.vllm.talking import (
    ON_THE_SHARED_ENGINE,
    RESPONSES,
    SERVED,
    Answer,
    ask,
    typed_events,
)

pytestmark = ON_THE_SHARED_ENGINE

_COSTLY = {"type": "string", "pattern": "(a{9999}){9999}"}


async def _ask(engine: VllmEngine, **fields: Any) -> Answer:
    wanted = {"input": "What is a gateway?", "temperature": 0, "max_output_tokens": 100} | fields
    return await ask(engine, json.dumps(wanted).encode(), RESPONSES)


def _text(response: Any) -> str:
    return "".join(part["text"] for item in response["output"] for part in item["content"])


async def test_a_response_says_that_it_is_not_stored_whatever_was_asked(engine: VllmEngine) -> None:
    for store in (True, False, None):
        answer = await _ask(engine, store=store)
        assert answer.json["store"] is False
        assert answer.json["status"] == "completed"
        assert (answer.json["object"], answer.json["model"]) == ("response", SERVED)
        assert answer.json["id"].startswith("resp_")
        assert answer.json["usage"]["output_tokens"] == answer.finished.completion_tokens


async def test_a_streamed_response_is_numbered_without_gaps_and_says_the_same(
    engine: VllmEngine,
) -> None:
    unary = (await _ask(engine)).json
    answer = await _ask(engine, stream=True)
    names, events = typed_events(answer)
    assert [event["sequence_number"] for event in events] == list(range(answer.events))
    assert (names[0], names[-1]) == ("response.created", "response.completed")
    whole = [event["response"] for event in events if "response" in event]
    assert {(one["id"], one["store"]) for one in whole} == {(whole[0]["id"], False)}
    assert _text(whole[-1]) == _text(unary)
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert "".join(deltas) == _text(unary)


async def test_a_stream_begins_when_the_engine_has_said_something(engine: VllmEngine) -> None:
    answer = await _ask(engine, stream=True)
    assert answer.head is not None
    assert answer.head.prompt_tokens == answer.finished.prompt_tokens


async def test_a_response_cut_short_ends_as_incomplete(engine: VllmEngine) -> None:
    unary = await _ask(engine, max_output_tokens=4)
    assert unary.json["status"] == "incomplete"
    names, events = typed_events(await _ask(engine, max_output_tokens=4, stream=True))
    assert names[-1] == "response.incomplete"
    assert events[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


async def test_nothing_of_a_response_is_kept_after_it(engine: VllmEngine) -> None:
    for stream in (True, False):
        await _ask(engine, store=True, stream=stream)
    assert engine._up is not None
    serving = engine._up.app.state.openai_serving_responses  # type: ignore[attr-defined]
    stores = (serving.response_store, serving.msg_store, serving.event_store)
    assert [len(store) for store in stores] == [0, 0, 0]
    assert not serving.background_tasks


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"background": True}, "background"),
        ({"background": True, "store": False}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        (
            {"text": {"format": {"type": "json_schema", "name": "n", "schema": _COSTLY}}},
            "text",
        ),
    ],
)
async def test_what_needs_memory_or_costs_too_much_is_refused_by_its_field(
    engine: VllmEngine, fields: dict[str, Any], parameter: str
) -> None:
    failed = (await _ask(engine, **fields)).failed
    assert (failed.status, failed.fault, failed.param) == (400, "client", parameter)


async def test_nulls_mean_what_leaving_out_does(engine: VllmEngine) -> None:
    nulls = dict.fromkeys(("background", "truncation", "store", "metadata"))
    assert (await _ask(engine, **nulls)).json["background"] is False


async def test_the_engine_gets_the_calls_controls_and_none_of_the_clients(
    engine: VllmEngine,
) -> None:
    fields = {
        "input": "Hello",
        "max_output_tokens": 4,
        "priority": -100,
        "cache_salt": "client",
        "session_id": "client",
        "kv_transfer_params": {"prompt_token_ids": [1]},
        "vllm_xargs": {"a": 1},
        "mm_processor_kwargs": {"a": 1},
    }
    with entering_requests(engine) as seen:
        await ask(engine, json.dumps(fields).encode(), RESPONSES, priority=7, tenant_salt="tenant")
    (one,) = seen
    assert (one.priority >> 32, one.prompt.get("cache_salt")) == (7, "tenant")
    assert len(one.prompt["prompt_token_ids"]) > 1
    assert "client" not in one.request_id
    assert not one.params.extra_args
    assert not one.more.get("session_id")


async def test_a_response_has_every_field_of_the_apis_and_repeats_the_clients(
    engine: VllmEngine,
) -> None:
    names = {"prompt_cache_key": "k", "safety_identifier": "s"}
    unary = (await _ask(engine, **names)).json
    _, events = typed_events(await _ask(engine, stream=True, **names))
    first, last = events[0]["response"], events[-1]["response"]
    for whole in (unary, first, last):
        assert {name: whole[name] for name in names} == names
        assert (whole["error"], whole["top_logprobs"]) == (None, 0)
        assert whole["text"]["format"] == {"type": "text"}
    assert unary["completed_at"] >= unary["created_at"]
    assert (first["completed_at"], bool(last["completed_at"])) == (None, True)
    parts = [event["part"] for event in events if event["type"].startswith("response.content_part")]
    items = [*unary["output"], *last["output"]]
    items += [event["item"] for event in events if event["type"] == "response.output_item.done"]
    parts += [part for item in items for part in item["content"]]
    assert [part["logprobs"] for part in parts] == [[]] * len(parts)


async def test_the_tokens_of_an_input_are_counted_as_a_response_uses_them(
    engine: VllmEngine,
) -> None:
    fields = {"input": "What is a gateway?", "instructions": "Be short."}
    counted = await ask(engine, json.dumps(fields).encode(), f"{RESPONSES}/input_tokens")
    used = (await _ask(engine, **fields)).json["usage"]["input_tokens"]
    assert counted.json == {"object": "response.input_tokens", "input_tokens": used}
