"""A provider that answers anything costs its own request, no other: real SDKs between."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.replica.providers.account import Account, Prices
from penstock.replica.providers.openai_answers import Chunks, whole
from penstock.replica.providers.provider_engine import ProviderEngine
from penstock.replica.providers.sse import Events
from penstock.replica.providers.values import Ask, ProviderFailed
from penstock.replica.values import Call, Failed
from tests.fakes import bedrock_server as bedrock
from tests.fakes import openai_server as provider
from tests.fakes.provider_calls import (
    CHAT,
    asked,
    body_of,
    call,
    chat,
    end_of,
    failure,
    objects_of,
)
from tests.fakes.provider_server import Asked, ProviderServer, Scenario, Wire

_MOST_TOKENS = 100_000_000


def _answers(value: object, **headers: str) -> Scenario:
    async def answer(_: Asked, wire: Wire) -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        await wire.whole(200, body, {"content-type": "application/json", **headers})

    return answer


def _endless(portion: bytes, content_type: str) -> Scenario:
    async def answer(_: Asked, wire: Wire) -> None:
        await wire.begin(content_type)
        while True:
            await wire.portion(portion)

    return answer


def _unary(usage: Any = None, **choice: Any) -> dict[str, Any]:
    one = {"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop", **choice}
    return {"choices": [one], "usage": usage}


def _event(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _chunk(delta: Any, reason: Any = None, **more: Any) -> bytes:
    return _event({"choices": [{"index": 0, "delta": delta, "finish_reason": reason, **more}]})


@pytest.mark.parametrize("number", [1e30, 10**18, -5, "7", float("inf"), True, [1], 1.5])
async def test_a_number_that_is_no_count_is_not_believed(
    engine: ProviderEngine, server: ProviderServer, number: Any
) -> None:
    usage = {"prompt_tokens": number, "completion_tokens": number, "total_tokens": number}
    server.next.append(_answers(_unary(usage)))
    events = await asked(engine, chat())
    end = end_of(events)
    assert 0 < end.prompt_tokens < 100
    assert json.loads(body_of(events))["usage"]["prompt_tokens"] == end.prompt_tokens
    assert engine.load().prompt_tokens < 100


_BIG = b"x" * (1 << 20)


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_without_an_end_is_left_where_it_is_larger_than_was_asked_for(
    engine: ProviderEngine, server: ProviderServer, stream: bool
) -> None:
    portion = _chunk({"content": "many words "}) * 100 if stream else _BIG
    server.next.append(_endless(portion, "text/event-stream" if stream else "application/json"))
    events = await asked(engine, chat(stream=stream, max_tokens=50))
    assert isinstance(events[-1], Failed)
    assert events[-1].code == "upstream_too_large"
    assert len(body_of(events)) < 3 << 20
    assert len(server.asked) == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_bedrock_has_the_same_bounds(
    bedrock_engine: ProviderEngine, bedrock_server: ProviderServer, stream: bool
) -> None:
    event = ("contentBlockDelta", {"delta": {"text": "many words "}, "contentBlockIndex": 0})
    portion = bedrock.frame(*event) * 100 if stream else _BIG
    kind = "application/vnd.amazon.eventstream" if stream else "application/json"
    bedrock_server.next.append(_endless(portion, kind))
    events = await asked(bedrock_engine, chat(stream=stream, max_tokens=50))
    assert isinstance(events[-1], Failed)
    assert events[-1].code == "upstream_too_large"
    assert len(bedrock_server.asked) == 1


@pytest.mark.parametrize("status", [200, 400])
async def test_what_grows_as_it_is_unpacked_is_not_unpacked(
    engine: ProviderEngine, server: ProviderServer, status: int
) -> None:
    bomb = gzip.compress(b" " * (64 << 20))

    async def answer(_: Asked, wire: Wire) -> None:
        await wire.whole(status, bomb, {"content-encoding": "gzip"})

    server.next += [answer] * 3
    tracemalloc.start()
    try:
        failed = await failure(engine, chat())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert failed.code == "upstream_unreachable"
    assert peak < 16 << 20
    assert server.asked[0].headers["accept-encoding"] == "identity"


async def test_what_a_compatible_provider_streams_becomes_whole_chunks(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    filtered = {"id": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": []}
    offsets = {"id": "", "choices": [{"index": 0, "finish_reason": None, "offsets": {}}]}
    words = [_chunk({"content": "Hi\ud83d"}), _event(offsets), _chunk({}, "MAX_TOKENS")]
    server.next.append(provider.raw_stream(_event(filtered), *words, b"data: [DONE]\n\n"))
    objects = objects_of(await asked(engine, chat(stream=True)))
    assert len({(one["id"], one["created"], one["object"], one["model"]) for one in objects}) == 1
    assert all(isinstance(one["choices"][0]["delta"], dict) for one in objects)
    assert objects[0]["choices"][0]["delta"]["content"] == "Hi\ufffd"
    assert objects[-1]["choices"][0]["finish_reason"] == "length"


_WHOLE = [_chunk({"content": "Hi"}, "stop"), b"data: [DONE]\n\n"]


@pytest.mark.parametrize("ways", [{"silent": True}, {"cut": True}])
async def test_nothing_after_the_last_event_holds_an_answer_back_or_takes_it_back(
    engine: ProviderEngine, server: ProviderServer, ways: dict[str, bool]
) -> None:
    server.next.append(provider.raw_stream(*_WHOLE, **ways))
    async with asyncio.timeout(5):  # the provider goes on for a minute
        events = await asked(engine, chat(stream=True))
    assert end_of(events).finish_reasons == ("stop",)
    assert body_of(events).endswith(b"data: [DONE]\n\n")
    assert engine.load().running == 0


@pytest.mark.parametrize(
    "calls",
    [
        {"a": 1},
        [5],
        [{"index": 0, "function": "f"}],
        [{"index": 0, "function": {"name": "f", "arguments": [1]}}],
        [{"index": 0, "function": {"name": 7, "arguments": ""}}],
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_calls_that_are_none_are_a_failure(
    engine: ProviderEngine, server: ProviderServer, calls: Any, stream: bool
) -> None:
    said = _chunk({"tool_calls": calls}, "tool_calls")
    unary = _answers(_unary(message={"tool_calls": calls}))
    server.next += [provider.raw_stream(said, _WHOLE[-1]) if stream else unary] * 3
    failed = await failure(engine, chat(stream=stream))
    assert (failed.status, failed.code) == (502, "upstream_cut_short")
    assert "a call" in failed.message or "calls" in failed.message


@pytest.mark.parametrize("data", [None, [], {}, [5], [{"embedding": None}], [{"index": 0}]])
async def test_an_answer_without_embeddings_is_a_failure(
    engine: ProviderEngine, server: ProviderServer, data: Any
) -> None:
    server.next += [_answers({**_unary(), "data": data})] * 3
    failed = await failure(engine, call("/v1/embeddings", input="Hello"))
    assert (failed.status, failed.code) == (502, "upstream_cut_short")
    assert "no embeddings" in failed.message


@pytest.mark.parametrize("message", [None, {}])
async def test_a_choice_without_a_message_is_a_failure(
    engine: ProviderEngine, server: ProviderServer, message: Any
) -> None:
    server.next += [_answers(_unary(message=message))] * 3
    assert "no message" in (await failure(engine, chat())).message


async def test_counts_are_whole_numbers(engine: ProviderEngine, server: ProviderServer) -> None:
    usage = {"prompt_tokens": 5.0, "completion_tokens": 2, "total_tokens": 7.0, "other": {"a": 0}}
    server.next.append(_answers(_unary(usage)))
    told = body_of(await asked(engine, chat()))
    assert b'"total_tokens":7,' in told.replace(b" ", b"")
    assert json.loads(told)["usage"]["prompt_tokens"] == 5


async def test_a_choice_that_comes_twice_is_a_failure(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    server.next += [_answers({"choices": _unary()["choices"] * 2})] * 3
    failed = await failure(engine, chat())
    assert (failed.status, failed.code) == (502, "upstream_cut_short")
    assert "twice" in failed.message


async def test_arguments_that_come_as_an_object_are_a_text_of_json(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": {"x": "é"}}}]
    server.next.append(_answers(_unary(message={"content": None, "tool_calls": calls})))
    (choice,) = json.loads(body_of(await asked(engine, chat())))["choices"]
    assert json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"]) == {"x": "é"}


@pytest.mark.parametrize("reason", [None, "", "error"])
async def test_a_unary_answer_without_an_end_is_a_failure(
    engine: ProviderEngine, server: ProviderServer, reason: str | None
) -> None:
    server.next += [_answers(_unary(finish_reason=reason))] * 3
    failed = await failure(engine, chat())
    assert (failed.status, failed.code) == (502, "upstream_cut_short")


async def test_an_error_in_place_of_a_stream_is_told_in_its_words(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    server.next.append(_answers({"error": {"message": "model is overloaded, try later"}}))
    failed = await failure(engine, chat(stream=True))
    assert (failed.status, failed.code) == (502, "upstream_error")
    assert "overloaded" in failed.message


@pytest.mark.parametrize(
    ("told", "least", "most"),
    [
        ("20", 20_000, 20_000),
        ("date", 15_000, 20_000),
        ("inf", 0, 0),
        ("1e12", 86_400_000, 86_400_000),
    ],
)
async def test_a_time_to_wait_is_read_in_any_form_and_bounded(
    engine: ProviderEngine,
    server: ProviderServer,
    bedrock_engine: ProviderEngine,
    bedrock_server: ProviderServer,
    told: str,
    least: int,
    most: int,
) -> None:
    after = {"retry-after": told if told != "date" else _in_20_s()}
    server.next += [provider.refuse(429, "slow down", headers=after)] * 2
    bedrock_server.next += [bedrock.refuse(429, "ThrottlingException", "slow down", after)] * 2
    for one, where in ((engine, server), (bedrock_engine, bedrock_server)):
        failed = await failure(one, chat())
        assert failed.status == 429
        assert least <= failed.retry_after_ms <= most
        assert len(where.asked) == (1 if least else 2)


def _in_20_s() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)


_NAMES = (
    *("choices", "index", "delta", "message", "content", "tool_calls", "function", "arguments"),
    *("finish_reason", "usage", "prompt_tokens", "completion_tokens", "prompt_tokens_details"),
    *("cached_tokens", "error", "text", "created", "id"),
)
_JSON = st.recursive(
    st.sampled_from([None, True, 0, 1, -1, 1e30, 10**18, 1.5, "x", "", "\ud800", "stop", "error"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(_NAMES),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
_ANSWER = st.fixed_dictionaries({"choices": st.lists(_JSON, max_size=2) | _JSON, "usage": _JSON})
_ODD = (AttributeError, IndexError, KeyError, TypeError, ValueError, ProviderFailed)


def _pieces(value: Any, *, stream: bool) -> Iterator[bytes]:
    ask = Ask(Call("r", CHAT, b"", "m"), {"stream": stream}, 1)
    account = Account(Prices(), 7)
    try:
        if stream:
            for piece in Chunks(ask, account, str).take("", json.dumps(value)):
                yield piece.body.removeprefix(b"data: ")
        else:
            yield whole(ask, account, json.dumps(value).encode(), str).body
    except _ODD:
        return  # the call fails, as `ProviderEngine` has it
    finally:
        end = account.finished()
        for number in (end.prompt_tokens, end.completion_tokens, end.cached_tokens):
            assert 0 <= number <= _MOST_TOKENS
        "".join(end.finish_reasons).encode()


@given(_ANSWER, st.booleans())
def test_whatever_comes_is_a_sound_answer_or_a_failure(value: Any, stream: bool) -> None:
    for body in _pieces(value, stream=stream):
        for choice in json.loads(body.decode())["choices"]:
            assert choice["index"] == 0
            assert isinstance(choice["delta" if stream else "message"], dict)
            known = (None, "stop", "length", "tool_calls", "content_filter", "function_call")
            assert choice["finish_reason"] in known


def test_bytes_of_an_event_are_looked_at_once() -> None:
    class Counted(bytes):
        looked = 0

        def split(self, *args: Any, **named: Any) -> list[bytes]:
            Counted.looked += len(self)
            return super().split(*args, **named)

    reading = Events()
    for _ in range(2000):
        reading.feed(Counted(b"x" * 500))
    assert Counted.looked == 2000 * 500


async def test_others_go_on_beside_a_hostile_answer(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    server.next.append(provider.usual(pace=0.02, key=provider.KEY))
    other = asyncio.ensure_future(asked(engine, chat(stream=True, max_tokens=30)))
    while not engine.load().tokens:
        await asyncio.sleep(0.005)
    server.next.append(_answers(_unary({"prompt_tokens": 1e30, "completion_tokens": 1e30})))
    end_of(await asked(engine, chat()))
    assert len(objects_of(await other)) == 32
