"""An openai engine in the test's process, and the local provider that it speaks with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from penstock.replica.providers.provider_engine import ProviderEngine
from tests.fakes import openai_server as provider
from tests.fakes.openai_server import KEY, MODEL
from tests.fakes.provider_calls import provider_engine
from tests.fakes.provider_server import ProviderServer

_PRICES = (
    "usd_per_million_input=1",
    "usd_per_million_cached=0.1",
    "usd_per_million_output=10",
)


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer(provider.usual(key=KEY)) as server:
        yield server


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    (tmp_path / "key").write_text(f"{KEY}\n")
    return tmp_path


@pytest.fixture
async def engine(server: ProviderServer, secrets: Path) -> AsyncIterator[ProviderEngine]:
    settings = (
        f"base_url={server.url}/v1",
        "api_key_file=key",
        "first_event_timeout_ms=400",
        "between_events_timeout_ms=400",
        "connect_timeout_ms=1000",
        *_PRICES,
    )
    flags = ("--secrets-dir", str(secrets))
    async with provider_engine("openai", MODEL, *settings, flags=flags) as engine:
        yield engine
