"""How long the openai engine waits for a provider that is silent, and what is no silence."""

from __future__ import annotations

import asyncio

import pytest

from penstock.replica.calls.answers import EventSink
from penstock.replica.providers.provider_engine import ProviderEngine
from penstock.replica.values import Failed, Finished
from tests.fakes import openai_server as provider
from tests.fakes.openai_server import KEY, MODEL
from tests.fakes.provider_calls import asked, body_of, chat, failure, objects_of
from tests.fakes.provider_server import ProviderServer

pytestmark = pytest.mark.impatient

_EVENTS = list(provider.stream_events({"model": MODEL, "messages": [], "max_tokens": 3}))


async def test_a_stream_that_falls_silent_ends_as_a_failure_and_never_as_an_end(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    server.next.append(provider.raw_stream(*_EVENTS[:3], silent=True))
    events = await asked(engine, chat(stream=True))
    assert isinstance(events[-1], Failed)
    assert events[-1].code == "upstream_timeout"
    assert b"content" in body_of(events)
    assert b"[DONE]" not in body_of(events)
    assert len(server.asked) == 1, "what the client has seen is not made again"


async def test_a_provider_that_says_nothing_is_not_asked_twice(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    server.next.append(provider.nothing)
    failed = await failure(engine, chat(stream=True))
    assert (failed.status, failed.code) == (504, "upstream_timeout")
    assert failed.retryable
    assert len(server.asked) == 1


async def test_a_sign_of_life_is_no_silence(engine: ProviderEngine, server: ProviderServer) -> None:
    pings = (b": ping\n\n",) * 3
    server.next.append(provider.raw_stream(*_EVENTS[:2], *pings, *_EVENTS[2:], pause=0.4))
    assert objects_of(await asked(engine, chat(stream=True)))


async def test_a_slow_client_holds_the_provider_back_and_is_no_fault_of_it(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    server.next.append(provider.usual(key=KEY))
    sink = EventSink()
    task = asyncio.ensure_future(engine.answer(chat(stream=True, max_tokens=4000), sink))
    await asyncio.sleep(1.2)  # longer than a provider may be silent
    assert engine.load().tokens < 100
    while not isinstance(event := await sink.take(), Finished | Failed):
        pass
    assert isinstance(event, Finished)
    await task
