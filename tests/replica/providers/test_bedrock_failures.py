"""What the bedrock engine makes of a Bedrock that fails, is slow, or has too slow a client."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.replica.calls.answers import EventSink
from penstock.replica.providers.provider_engine import ProviderEngine
from penstock.replica.values import Failed, Finished
from tests.fakes import bedrock_server as bedrock
from tests.fakes.bedrock_server import KEY_ID, MODEL, REGION
from tests.fakes.provider_calls import (
    asked,
    body_of,
    chat,
    failure,
    objects_of,
    provider_engine,
)
from tests.fakes.provider_server import Asked, ProviderServer, Scenario, Wire

_PNG = b"\x89PNG\r\n\x1a\nnot really"
_WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells it.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


@pytest.mark.parametrize(
    ("scenario", "status", "code", "fault"),
    [
        (
            bedrock.refuse(400, "ValidationException", "temperature: range"),
            400,
            "invalid_value",
            "client",
        ),
        (
            bedrock.refuse(400, "ValidationException", "Input is too long for requested model."),
            400,
            "context_length_exceeded",
            "client",
        ),
        (
            bedrock.refuse(400, "ValidationException", "The provided model identifier is invalid."),
            502,
            "upstream_model_not_found",
            "operator",
        ),
        (
            bedrock.refuse(404, "ResourceNotFoundException", "No such"),
            502,
            "upstream_model_not_found",
            "operator",
        ),
        (
            bedrock.refuse(403, "AccessDeniedException", f"{KEY_ID} may not"),
            502,
            "upstream_credentials",
            "operator",
        ),
        (
            bedrock.refuse(403, "ExpiredTokenException", "token expired"),
            502,
            "upstream_credentials",
            "operator",
        ),
    ],
)
async def test_a_refusal_has_one_attempt_and_the_status_of_whoever_can_mend_it(
    bedrock_engine: ProviderEngine,
    bedrock_server: ProviderServer,
    scenario: Scenario,
    status: int,
    code: str,
    fault: str,
) -> None:
    for stream in (True, False):
        bedrock_server.next.append(scenario)
        failed = await failure(bedrock_engine, chat(stream=stream))
        assert (failed.status, failed.code, failed.fault) == (status, code, fault)
        assert KEY_ID not in repr(failed)
    assert len(bedrock_server.asked) == 2


@pytest.mark.parametrize(
    "scenario",
    [
        bedrock.refuse(429, "ThrottlingException", "Too many tokens"),
        bedrock.refuse(503, "ServiceUnavailableException", "busy"),
        bedrock.refuse(500, "InternalServerException", "oh"),
        bedrock.refuse(408, "ModelTimeoutException", "slow"),
        bedrock.refuse(424, "ModelErrorException", "broke"),
        bedrock.refuse(429, "ModelNotReadyException", "loads"),
        bedrock.streamed(cut=True),
        bedrock.streamed(),
        bedrock.streamed(then=bedrock.frame("throttlingException", {"message": "x"}, "exception")),
    ],
)
async def test_what_fails_before_the_first_event_is_tried_again(
    bedrock_engine: ProviderEngine, bedrock_server: ProviderServer, scenario: Scenario
) -> None:
    bedrock_server.next.append(scenario)
    assert len(objects_of(await asked(bedrock_engine, chat(stream=True, max_tokens=2)))) == 4
    assert len(bedrock_server.asked) == 2


async def test_throttling_is_told_with_the_time_to_wait(
    bedrock_engine: ProviderEngine, bedrock_server: ProviderServer
) -> None:
    wait = {"retry-after": "9"}
    bedrock_server.next.append(bedrock.refuse(429, "ThrottlingException", "Too many tokens", wait))
    failed = await failure(bedrock_engine, chat())
    assert (failed.status, failed.type, failed.retry_after_ms) == (429, "rate_limit_error", 9000)
    assert len(bedrock_server.asked) == 1


_BEGUN = bedrock.text_events(["Once ", "upon "])[:3]
_DAMAGED = bytearray(bedrock.frame("contentBlockDelta", {"delta": {"text": "x"}}))
_DAMAGED[-6] ^= 1


@pytest.mark.parametrize(
    ("scenario", "code"),
    [
        (bedrock.streamed(*_BEGUN, cut=True), "upstream_cut_short"),
        (bedrock.streamed(*_BEGUN), "upstream_cut_short"),
        (bedrock.streamed(*_BEGUN, then=bytes(_DAMAGED)), "upstream_cut_short"),
        pytest.param(
            bedrock.streamed(*_BEGUN, silent=True), "upstream_timeout", marks=pytest.mark.impatient
        ),
        (bedrock.streamed(*_BEGUN, *bedrock.closing("malformed_tool_use")), "upstream_malformed"),
        (
            bedrock.streamed(
                *_BEGUN,
                then=bedrock.frame(
                    "modelStreamErrorException", {"message": "the model broke"}, "exception"
                ),
            ),
            "upstream_error",
        ),
        (
            bedrock.streamed(
                *_BEGUN,
                then=bedrock.frame("throttlingException", {"message": "slow down"}, "exception"),
            ),
            "rate_limit_exceeded",
        ),
    ],
)
async def test_what_breaks_in_mid_stream_ends_as_a_failure_and_never_as_an_end(
    bedrock_engine: ProviderEngine, bedrock_server: ProviderServer, scenario: Scenario, code: str
) -> None:
    bedrock_server.next.append(scenario)
    events = await asked(bedrock_engine, chat(stream=True))
    assert isinstance(events[-1], Failed)
    assert events[-1].code == code
    assert b"Once" in body_of(events)
    assert b"[DONE]" not in body_of(events)
    assert len(bedrock_server.asked) == 1


@pytest.mark.impatient
async def test_a_slow_drip_is_an_answer(
    bedrock_engine: ProviderEngine, bedrock_server: ProviderServer
) -> None:
    words = [f"{number} " for number in range(5)]
    bedrock_server.next.append(bedrock.streamed(*bedrock.text_events(words), pace=0.3))
    assert isinstance((await asked(bedrock_engine, chat(stream=True)))[-1], Finished)


async def test_a_client_that_leaves_ends_the_request_at_bedrock(
    bedrock_engine: ProviderEngine, bedrock_server: ProviderServer
) -> None:
    bedrock_server.next.append(bedrock.usual(pace=0.05))
    task = asyncio.ensure_future(asked(bedrock_engine, chat(stream=True, max_tokens=2000)))
    while not bedrock_engine.load().tokens:
        await asyncio.sleep(0.005)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await asyncio.to_thread(bedrock_server.left.wait, 10)
    assert bedrock_engine.load().running == 0


@pytest.mark.parametrize("stream", [True, False])
async def test_clients_that_leave_before_its_first_word_keep_nobody_else_waiting(
    bedrock_server: ProviderServer, aws: Path, stream: bool
) -> None:
    async def says_nothing(_: Asked, __: Wire) -> None:
        await asyncio.sleep(60)

    settings = (f"endpoint_url={bedrock_server.url}", f"region={REGION}", "max_calls=2")
    async with provider_engine("bedrock", MODEL, *settings) as engine, asyncio.timeout(20):
        for count in range(1, 9):  # more than it has threads
            bedrock_server.next.append(says_nothing)
            task = asyncio.ensure_future(asked(engine, chat(stream=stream)))
            while len(bedrock_server.asked) < count:
                await asyncio.sleep(0.005)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert isinstance((await asked(engine, chat(stream=stream)))[-1], Finished)


@pytest.mark.impatient
async def test_a_slow_client_holds_bedrock_back(
    bedrock_engine: ProviderEngine, bedrock_server: ProviderServer
) -> None:
    sink = EventSink()
    task = asyncio.ensure_future(bedrock_engine.answer(chat(stream=True, max_tokens=4000), sink))
    await asyncio.sleep(1.2)  # longer than a provider may be silent
    assert bedrock_engine.load().tokens < 500
    while not isinstance(event := await sink.take(), Finished | Failed):
        pass
    assert isinstance(event, Finished)
    await task


async def test_a_hundred_streams_run_at_once(bedrock_server: ProviderServer, aws: Path) -> None:
    for _ in range(100):
        bedrock_server.next.append(bedrock.usual(pace=0.3))
    settings = (f"endpoint_url={bedrock_server.url}", f"region={REGION}")
    async with provider_engine("bedrock", MODEL, *settings) as bedrock_engine:
        one = chat(stream=True, max_tokens=15)
        tasks = [asyncio.ensure_future(asked(bedrock_engine, one)) for _ in range(100)]
        while bedrock_server.running < 100:
            await asyncio.sleep(0.01)
        assert bedrock_engine.load().running == 100
        ends = [events[-1] for events in await asyncio.gather(*tasks)]
    assert all(isinstance(end, Finished) for end in ends)
