"""Prompts of providers within their budgets, estimated."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.replica.providers.provider_engine import ProviderEngine
from penstock.replica.values import Head
from tests.fakes.openai_server import MODEL
from tests.fakes.provider_calls import asked, call, end_of, failure, provider_engine
from tests.fakes.provider_server import ProviderServer

_TURNS: list[dict[str, Any]] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "old " * 200},
    {"role": "assistant", "content": "older " * 200},
    {"role": "user", "content": "And now?"},
]


async def test_a_conversation_that_is_too_long_loses_its_oldest_turns_where_it_may(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    one = call("/v1/chat/completions", messages=_TURNS, max_tokens=1)
    events = await asked(engine, replace(one, max_prompt_tokens=100, trim=True))
    end_of(events)
    (head,) = [event for event in events if isinstance(event, Head)]
    assert head.trimmed_messages == 2
    assert head.trimmed_tokens > 400
    sent = json.loads(server.asked[-1].body)["messages"]
    assert sent == [_TURNS[0], _TURNS[3]]


async def test_without_leave_it_is_refused_and_nothing_is_sent(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    one = call("/v1/chat/completions", messages=_TURNS)
    failed = await failure(engine, replace(one, max_prompt_tokens=100))
    assert (failed.status, failed.code) == (400, "token_budget_exceeded")
    assert not server.asked


async def test_what_has_to_stay_and_is_too_much_is_refused(
    engine: ProviderEngine, server: ProviderServer
) -> None:
    one = call("/v1/chat/completions", messages=[{"role": "user", "content": "new " * 500}])
    failed = await failure(engine, replace(one, max_prompt_tokens=100, trim=True))
    assert failed.code == "token_budget_exceeded"
    assert not server.asked


@pytest.mark.parametrize(("answer", "kept"), [(10, 2), (100, 2), (300, 2)])
async def test_the_models_context_is_trimmed_to_and_never_refused_by_an_estimate(
    server: ProviderServer, secrets: Path, answer: int, kept: int
) -> None:
    settings = (f"base_url={server.url}/v1", "api_key_file=key", "max_model_len=300")
    flags = ("--secrets-dir", str(secrets))
    alone = [{"role": "user", "content": "new " * 500}]
    async with provider_engine("openai", MODEL, *settings, flags=flags) as engine:
        one = call("/v1/chat/completions", messages=_TURNS, max_tokens=answer)
        end_of(await asked(engine, replace(one, trim=True)))
        assert len(json.loads(server.asked[-1].body)["messages"]) == kept
        one = call("/v1/chat/completions", messages=alone, max_tokens=answer)
        end_of(await asked(engine, replace(one, trim=True)))
        assert json.loads(server.asked[-1].body)["messages"] == alone
        failed = await failure(engine, replace(one, trim=True, max_prompt_tokens=400))
        assert failed.code == "token_budget_exceeded"
