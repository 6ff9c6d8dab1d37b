"""How much a provider is asked for: tokens of an answer, and calls at once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.replica.providers.provider_engine import ProviderEngine
from penstock.replica.values import CannotLoad
from tests.fakes.openai_server import MODEL
from tests.fakes.provider_calls import asked, call, chat, end_of, failure, provider_engine
from tests.fakes.provider_server import ProviderServer


def _sent(server: ProviderServer) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(server.asked[-1].body)
    return body


async def test_a_request_without_a_limit_gets_the_calls(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    events = await asked(engine, replace(chat(), max_completion_tokens=5))
    assert _sent(server)["max_tokens"] == 5
    assert end_of(events).completion_tokens == 5
    failed = await failure(engine, replace(chat(max_tokens=6), max_completion_tokens=5))
    assert (failed.status, failed.code) == (400, "token_budget_exceeded")


async def test_of_two_limits_each_is_checked_and_the_one_that_counts_is_sent(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    end_of(await asked(engine, chat(max_completion_tokens=3, max_tokens=4)))
    sent = _sent(server)
    assert (sent["max_completion_tokens"], sent.get("max_tokens")) == (3, None)
    for limits in ({"max_tokens": 6}, {"max_tokens": "x"}, {"max_tokens": 0}):
        one = chat(max_completion_tokens=3, **limits)
        failed = await failure(engine, replace(one, max_completion_tokens=5))
        assert (failed.status, failed.param) == (400, "max_tokens")


async def test_a_limit_of_the_gateways_is_no_fault_of_the_clients(
    server: ProviderServer, secrets: Path
) -> None:
    settings = (f"base_url={server.url}/v1", "api_key_file=key", "max_model_len=100")
    flags = ("--secrets-dir", str(secrets))
    async with provider_engine("openai", MODEL, *settings, flags=flags) as engine:
        end_of(await asked(engine, replace(chat(), max_completion_tokens=200)))
        embedding = call("/v1/embeddings", input="Hello")
        end_of(await asked(engine, replace(embedding, max_completion_tokens=200)))
        assert "" not in _sent(server)
        failed = await failure(engine, chat(max_tokens=101))
    assert (failed.param, failed.code) == ("max_tokens", "context_length_exceeded")


async def test_a_deployment_may_have_more_calls_at_once(
    server: ProviderServer, secrets: Path
) -> None:
    needed = (f"base_url={server.url}/v1", "api_key_file=key")
    flags = ("--secrets-dir", str(secrets))
    async with provider_engine("openai", MODEL, *needed, "max_calls=250", flags=flags) as engine:
        assert (await engine.start()).max_running == 250
    with pytest.raises(CannotLoad, match="max_calls is '0'"):
        async with provider_engine("openai", MODEL, *needed, "max_calls=0", flags=flags):
            pass
