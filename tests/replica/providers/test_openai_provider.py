"""The openai engine, the real SDK in between, against a local provider that misbehaves."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.replica.providers.provider_engine import ProviderEngine
from penstock.replica.values import Chunk, EngineError, Failed, Finished
from tests.fakes import openai_server as provider
from tests.fakes.openai_server import KEY, MODEL, REQUEST_ID
from tests.fakes.provider_calls import (
    asked,
    body_of,
    call,
    chat,
    end_of,
    failure,
    objects_of,
    provider_engine,
)
from tests.fakes.provider_server import Asked, ProviderServer, Scenario, Wire


def _sent(server: ProviderServer, index: int = -1) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(server.asked[index].body)
    return body


async def test_a_streams_ids_and_extra_fields_stay_and_its_model_is_ours(
    engine: ProviderEngine,
) -> None:
    events = await asked(engine, chat(stream=True, max_tokens=3))
    objects = objects_of(events)
    assert {one["id"] for one in objects} == {"chatcmpl-of-provider"}
    assert {one["model"] for one in objects} == {"our-name"}
    assert {one["service_tier"] for one in objects} == {"default"}
    assert objects[-1]["choices"][0]["finish_reason"] == "length"
    end = end_of(events)
    assert end.finish_reasons == ("length",)
    assert end.provider_request_id == REQUEST_ID
    assert sum(event.tokens for event in events if isinstance(event, Chunk)) == 3


async def test_what_it_cost_is_what_the_provider_told_times_the_prices(
    engine: ProviderEngine,
) -> None:
    end = end_of(await asked(engine, chat(stream=True, max_tokens=3)))
    prompt, cached = end.prompt_tokens, end.cached_tokens
    assert (prompt, cached, end.completion_tokens) == (prompt, prompt // 2, 3)
    assert end.cost_nanousd == (prompt - cached) * 1000 + cached * 100 + 3 * 10_000


async def test_usage_is_always_asked_for_and_passed_on_to_those_that_asked(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    plain = objects_of(await asked(engine, chat(stream=True, max_tokens=2)))
    assert _sent(server)["stream_options"] == {"include_usage": True}
    assert all("usage" not in one and one["choices"] for one in plain)
    wanted = chat(stream=True, max_tokens=2, stream_options={"include_usage": True})
    *_, last = objects_of(await asked(engine, wanted))
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 2


async def test_usage_on_the_last_choice_becomes_a_chunk_of_its_own(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    usage = {"prompt_tokens": 4, "completion_tokens": 1}
    chunk = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}
    server.next.append(provider.raw_stream(_data(chunk), b"data: [DONE]\n\n"))
    wanted = chat(stream=True, stream_options={"include_usage": True})
    events = await asked(engine, wanted)
    first, last = objects_of(events)
    assert first["usage"] is None
    assert last["choices"] == []
    assert last["usage"].items() >= usage.items()
    assert end_of(events).prompt_tokens == 4


async def test_a_unary_answer_is_the_providers_own(engine: ProviderEngine) -> None:
    events = await asked(engine, chat(max_tokens=2))
    body = json.loads(body_of(events))
    assert (body["id"], body["model"]) == ("chatcmpl-of-provider", "our-name")
    assert body["usage"]["completion_tokens"] == end_of(events).completion_tokens == 2


async def test_what_is_between_the_client_and_us_stays_here(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    pinned = {"role": "user", "content": "Hi", "penstock": {"pin": True}}
    marks = {"priority": -5, "cache_salt": "s", "kv_transfer_params": {}, "penstock": {}}
    await asked(engine, call("/v1/chat/completions", messages=[pinned], top_k=3, **marks))
    sent = _sent(server)
    assert sent["messages"] == [{"role": "user", "content": "Hi"}]
    assert not set(marks) & set(sent)
    assert (sent["model"], sent["top_k"]) == (MODEL, 3)


async def test_embeddings_and_completions_are_passed_on(engine: ProviderEngine) -> None:
    events = await asked(engine, call("/v1/embeddings", input="Hello"))
    assert json.loads(body_of(events))["data"][0]["embedding"] == [0.25, -1.5]
    assert end_of(events).prompt_tokens == 3
    events = await asked(engine, call("/v1/completions", prompt="Hi", max_tokens=2, stream=True))
    assert [one["choices"][0]["text"] != "" for one in objects_of(events)] == [True, True, False]


async def test_responses_are_passed_on_and_nothing_is_kept_there(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    events = await asked(engine, call("/v1/responses", input="Hello", stream=True))
    blocks = body_of(events).decode().split("\n\n")
    assert [block.split("\n")[0] for block in blocks[:-1]] == [
        "event: response.created",
        "event: response.output_text.delta",
        "event: response.completed",
    ]
    assert '"model":"our-name"' in blocks[2]
    end = end_of(events)
    assert (end.prompt_tokens, end.completion_tokens, end.cached_tokens) == (5, 2, 4)
    assert _sent(server)["store"] is False
    failed = await failure(engine, call("/v1/responses", input="x", previous_response_id="r"))
    assert failed.param == "previous_response_id"


async def _plain_403(_: Asked, wire: Wire) -> None:
    await wire.whole(403, b'{"message": "no"}', {"content-type": "application/json"})


async def _no_page(_: Asked, wire: Wire) -> None:
    await wire.whole(404, b"404 page not found", {"content-type": "text/plain"})


@pytest.mark.parametrize(
    ("scenario", "status", "code", "fault"),
    [
        (provider.refuse(400, "bad", code="invalid_value", param="x"), 400, "", "client"),
        (
            provider.refuse(400, "long", code="context_length_exceeded"),
            400,
            "context_length_exceeded",
            "client",
        ),
        (provider.refuse(422, "odd"), 422, "invalid_value", "client"),
        (provider.refuse(401, f"Bad key {KEY}"), 502, "upstream_credentials", "operator"),
        (provider.refuse(403, ""), 502, "upstream_credentials", "operator"),
        (_plain_403, 502, "upstream_credentials", "operator"),
        (provider.refuse(403, "The key may not"), 502, "upstream_credentials", "operator"),
        (provider.refuse(403, "Your input was flagged", code="m"), 403, "m", "client"),
        (provider.refuse(402, "Insufficient credits"), 429, "insufficient_quota", "operator"),
        (provider.refuse(404, "no model"), 502, "upstream_model_not_found", "operator"),
        (_no_page, 502, "upstream_no_endpoint", "operator"),
        (
            provider.refuse(429, "quota", code="insufficient_quota"),
            429,
            "insufficient_quota",
            "operator",
        ),
        (provider.redirect("http://127.0.0.1:1/"), 502, "upstream_no_endpoint", "operator"),
    ],
)
async def test_a_refusal_has_one_attempt_and_the_status_of_whoever_can_mend_it(
    engine: ProviderEngine,
    server: ProviderServer,
    scenario: Scenario,
    status: int,
    code: str,
    fault: str,
) -> None:
    server.next.append(scenario)
    failed = await failure(engine, chat(stream=True))
    assert (failed.status, failed.fault) == (status, fault)
    assert failed.code == (code or failed.code)
    assert KEY not in repr(failed)
    assert len(server.asked) == 1
    assert failed.retryable == (fault == "operator")


@pytest.mark.parametrize("code", ["engine_dead", "draining", "queue_full", "boom"])
async def test_a_providers_words_for_its_faults_are_not_taken_for_ours(
    engine: ProviderEngine, server: ProviderServer, code: str
) -> None:
    server.next += [provider.refuse(500, "oh", code=code)] * 3
    assert (await failure(engine, chat())).code == "upstream_error"
    server.next += [provider.refuse(429, "oh", code=code)] * 3
    assert (await failure(engine, chat())).code == "rate_limit_exceeded"


@pytest.mark.parametrize(
    "scenario",
    [
        provider.refuse(500, "oh"),
        provider.refuse(503, "busy"),
        provider.refuse(429, "slow down", headers={"retry-after-ms": "20"}),
        provider.broken,
        provider.raw_stream(cut=True),
        provider.raw_stream(),
    ],
)
async def test_what_fails_before_the_first_event_is_tried_again(
    engine: ProviderEngine, server: ProviderServer, scenario: Scenario
) -> None:
    server.next.append(scenario)
    events = await asked(engine, chat(stream=True, max_tokens=2))
    assert len(objects_of(events)) == 4
    assert len(server.asked) == 2


async def test_a_provider_that_takes_no_more_says_when_it_does(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    server.next.append(provider.refuse(429, "slow down", headers={"retry-after": "7"}))
    failed = await failure(engine, chat())
    assert (failed.status, failed.type) == (429, "rate_limit_error")
    assert failed.retry_after_ms == 7000
    assert len(server.asked) == 1, "nobody waits here so long"


def _data(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


_EVENTS = list(provider.stream_events({"model": MODEL, "messages": [], "max_tokens": 3}))


@pytest.mark.parametrize(
    ("scenario", "code"),
    [
        (provider.raw_stream(*_EVENTS[:3], cut=True), "upstream_cut_short"),
        (provider.raw_stream(*_EVENTS[:3]), "upstream_cut_short"),
        (provider.raw_stream(*_EVENTS[:3], _EVENTS[-1]), "upstream_cut_short"),
        (provider.raw_stream(*_EVENTS[:3], b"data: {half\n\n"), "upstream_cut_short"),
        (provider.raw_stream(*_EVENTS[:3], b"data: \xff\n\n"), "upstream_cut_short"),
        (
            provider.raw_stream(*_EVENTS[:3], _data({"choices": [{"index": []}]})),
            "upstream_cut_short",
        ),
        (
            provider.raw_stream(
                *_EVENTS[:3], _data({"error": {"message": f"I died, {KEY}", "code": "engine_dead"}})
            ),
            "upstream_error",
        ),
    ],
)
async def test_what_breaks_in_mid_stream_ends_as_a_failure_and_never_as_an_end(
    engine: ProviderEngine, server: ProviderServer, scenario: Scenario, code: str
) -> None:
    server.next.append(scenario)
    events = await asked(engine, chat(stream=True))
    assert isinstance(events[-1], Failed)
    assert events[-1].code == code
    assert b"w1" in body_of(events) or b"content" in body_of(events)
    assert b"[DONE]" not in body_of(events)
    assert KEY not in repr(events[-1])
    assert len(server.asked) == 1, "what the client has seen is not made again"


@pytest.mark.parametrize("size", [1, 3, 7, 50])
async def test_a_stream_may_come_in_any_portions_and_with_other_line_ends(
    engine: ProviderEngine, server: ProviderServer, size: int
) -> None:
    words = {"choices": [{"index": 0, "delta": {"content": "Grüße ☂"}, "finish_reason": "stop"}]}
    text = json.dumps(words, ensure_ascii=False).encode()
    stream = b": hello\r\n\r\ndata:" + text + b"\r\n\r\ndata: [DONE]\r\n"
    portions = [stream[at : at + size] for at in range(0, len(stream), size)]
    server.next.append(provider.raw_stream(*portions))
    (one,) = objects_of(await asked(engine, chat(stream=True)))
    assert one["choices"][0]["delta"]["content"] == "Grüße ☂"


async def test_a_provider_that_forgets_its_done_is_forgiven_after_the_reason(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    server.next.append(provider.raw_stream(*_EVENTS[:-1]))
    assert objects_of(await asked(engine, chat(stream=True)))


async def test_without_its_done_a_stream_is_whole_only_with_all_of_its_choices(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    server.next.append(provider.raw_stream(*_EVENTS[:-1]))
    events = await asked(engine, chat(stream=True, n=2))
    assert isinstance(events[-1], Failed)
    assert events[-1].code == "upstream_cut_short"
    one = call("/v1/completions", prompt=["a", "b"], stream=True)
    server.next.append(provider.raw_stream(*_EVENTS[:-1]))
    assert isinstance((await asked(engine, one))[-1], Failed)


@pytest.mark.parametrize("answer", [b'{"id": "x"}', b'{"choices": []}', b'{"choices": null}'])
async def test_a_body_without_choices_is_a_fault(
    engine: ProviderEngine, server: ProviderServer, answer: bytes
) -> None:
    server.next += [provider.raw_stream(answer)] * 3
    assert (await failure(engine, chat())).code == "upstream_cut_short"


async def test_a_deadline_of_the_call_holds(engine: ProviderEngine, server: ProviderServer) -> None:
    server.next.append(provider.nothing)
    failed = await failure(engine, replace(chat(stream=True), deadline_ms=50))
    assert failed.code == "deadline_exceeded"


async def test_a_client_that_leaves_ends_the_request_at_the_provider(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    server.next.append(provider.usual(pace=0.05, key=KEY))
    task = asyncio.ensure_future(asked(engine, chat(stream=True, max_tokens=2000)))
    while not engine.load().tokens:
        await asyncio.sleep(0.005)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await asyncio.to_thread(server.left.wait, 10)
    assert engine.load().running == 0


async def test_a_rotated_key_counts_from_the_next_call_on(
    engine: ProviderEngine, server: ProviderServer, secrets: Path
) -> None:
    end_of(await asked(engine, chat(max_tokens=1)))
    (secrets / "key").write_text("sk-test-rotated-99")
    failed = await failure(engine, chat(max_tokens=1))
    assert failed.code == "upstream_credentials"
    assert server.asked[-1].headers["authorization"] == "Bearer sk-test-rotated-99"
    (secrets / "key").unlink()
    before = len(server.asked)
    assert (await failure(engine, chat())).code == "upstream_credentials"
    assert len(server.asked) == before, "without a key nothing is sent"


async def test_a_hundred_streams_run_at_once_and_the_next_waits(
    server: ProviderServer, secrets: Path
) -> None:
    for _ in range(101):
        server.next.append(provider.usual(pace=0.1, key=KEY))
    settings = (f"base_url={server.url}/v1", "api_key_file=key")
    flags = ("--secrets-dir", str(secrets))
    async with provider_engine("openai", MODEL, *settings, flags=flags) as engine:
        one = chat(stream=True, max_tokens=15)
        tasks = [asyncio.ensure_future(asked(engine, one)) for _ in range(101)]
        while server.running < 100:
            await asyncio.sleep(0.01)
        assert (engine.load().running, engine.load().waiting) == (100, 1)
        ends = [events[-1] for events in await asyncio.gather(*tasks)]
    assert all(isinstance(end, Finished) for end in ends)
    assert server.most_running == 100


async def test_a_provider_that_goes_fails_calls_and_is_used_again_when_it_is_back(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    server.go_away()
    failed = await failure(engine, chat())
    assert (failed.status, failed.code, failed.retryable) == (502, "upstream_unreachable", True)
    with pytest.raises(EngineError, match="takes no connection"):
        await engine.reach()
    await engine.probe()
    server.come_back()
    await engine.reach()
    end_of(await asked(engine, chat(max_tokens=1)))


async def test_the_requests_trace_goes_on_at_the_provider(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    await asked(engine, chat(max_tokens=2))
    assert "traceparent" not in server.asked[-1].headers
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await asked(engine, replace(chat(max_tokens=2), traceparent=parent))
    assert server.asked[-1].headers["traceparent"] == parent
