"""What a provider may charge for is counted, whether or not anybody got an answer."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from penstock.replica.providers.provider_engine import ProviderEngine
from tests.fakes import bedrock_server as bedrock
from tests.fakes import openai_server as provider
from tests.fakes.provider_calls import CostSink, asked, call, chat, end_of, spent
from tests.fakes.provider_server import ProviderServer

_TOKENS = 400
_LONG = "many words " * (4 * _TOKENS // 11)
_PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4_000_000}}


def _is_estimate(tokens: int) -> bool:
    return _TOKENS * 0.9 < tokens < _TOKENS * 1.1


@pytest.mark.impatient
@pytest.mark.parametrize("stream", [True, False])
async def test_what_was_sent_and_not_answered_in_time_costs_its_prompt(
    engine: ProviderEngine, server: ProviderServer, stream: bool
) -> None:
    server.next.append(provider.nothing)
    usage = await spent(engine, chat(_LONG, stream=stream))
    assert _is_estimate(usage.prompt_tokens)
    assert usage.cost_nanousd == usage.prompt_tokens * 1000


@pytest.mark.parametrize("stream", [True, False])
async def test_what_its_client_left_before_an_answer_costs_its_prompt(
    engine: ProviderEngine, server: ProviderServer, stream: bool
) -> None:
    server.next.append(provider.nothing)
    sink = CostSink()
    task = asyncio.ensure_future(engine.answer(chat(_LONG, stream=stream), sink))
    while not server.asked:
        await asyncio.sleep(0.005)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert _is_estimate(sink.spent().prompt_tokens)


async def test_an_attempt_that_was_made_again_is_counted_too(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    once = end_of(await asked(engine, chat(_LONG, max_tokens=1)))
    server.next.append(provider.broken)
    twice = end_of(await asked(engine, chat(_LONG, max_tokens=1)))
    assert len(server.asked) == 3
    assert _is_estimate(twice.prompt_tokens - once.prompt_tokens)
    assert twice.cost_nanousd > once.cost_nanousd


async def test_what_was_refused_or_never_sent_costs_nothing(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    server.next.append(provider.refuse(400, "bad"))
    assert (await spent(engine, chat(_LONG))).cost_nanousd == 0
    server.go_away()
    assert (await spent(engine, replace(chat(_LONG), deadline_ms=2000))).cost_nanousd == 0
    server.come_back()


@pytest.mark.impatient
async def test_a_picture_is_not_counted_by_its_bytes(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    server.next.append(provider.nothing)
    content = [{"type": "text", "text": "What is it?"}, _PICTURE]
    one = call("/v1/chat/completions", messages=[{"role": "user", "content": content}])
    assert 1000 < (await spent(engine, one)).prompt_tokens < 1100


@pytest.mark.parametrize("stream", [True, False])
async def test_a_malformed_answer_of_bedrock_costs_what_bedrock_says(
    bedrock_engine: ProviderEngine, bedrock_server: ProviderServer, stream: bool
) -> None:
    words = [("messageStart", {"role": "assistant"})]
    told = bedrock.closing("malformed_tool_use", 7)
    for _ in range(3):
        bedrock_server.next.append(
            bedrock.streamed(*words, *told) if stream else bedrock.unary([], "malformed_tool_use")
        )
    usage = await spent(bedrock_engine, chat(stream=stream))
    attempts = len(bedrock_server.asked)
    assert (usage.prompt_tokens, usage.cached_tokens) == (17 * attempts, 4 * attempts)
    assert usage.completion_tokens > 0
    assert usage.cost_nanousd > 13 * 3000 * attempts


async def test_only_what_bedrock_may_have_worked_on_costs(
    bedrock_engine: ProviderEngine, bedrock_server: ProviderServer
) -> None:
    for stream in (True, False):
        bedrock_server.next.append(bedrock.refuse(500, "InternalServerException", "oh"))
        bedrock_server.next.append(bedrock.refuse(400, "ValidationException", "temperature"))
        usage = await spent(bedrock_engine, chat(_LONG, stream=stream))
        assert _is_estimate(usage.prompt_tokens), "one attempt of two was worked on"
