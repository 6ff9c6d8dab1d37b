"""Engines in the test's process, and the local providers that they speak with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from penstock.replica.providers.provider_engine import ProviderEngine
from tests.fakes import bedrock_server as bedrock
from tests.fakes import openai_server as provider
from tests.fakes.openai_server import KEY, MODEL
from tests.fakes.provider_calls import provider_engine
from tests.fakes.provider_server import ProviderServer

_PRICES = (
    "usd_per_million_input=1",
    "usd_per_million_cached=0.1",
    "usd_per_million_output=10",
)
_WAITS = ("first_event_timeout_ms", "answer_timeout_ms", "between_events_timeout_ms")


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer(provider.usual(key=KEY)) as server:
        yield server


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    (tmp_path / "key").write_text(f"{KEY}\n")
    return tmp_path


@pytest.fixture
def patience(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """How long an engine waits: too long for any machine, but where a test is about that."""
    milliseconds = 1_000 if request.node.get_closest_marker("impatient") else 60_000
    return tuple(f"{wait}={milliseconds}" for wait in _WAITS)


@pytest.fixture
async def engine(
    server: ProviderServer, secrets: Path, patience: tuple[str, ...]
) -> AsyncIterator[ProviderEngine]:
    settings = (f"base_url={server.url}/v1", "api_key_file=key", *patience, *_PRICES)
    flags = ("--secrets-dir", str(secrets))
    async with provider_engine("openai", MODEL, *settings, flags=flags) as engine:
        yield engine


@pytest.fixture
def bedrock_server() -> Iterator[ProviderServer]:
    with ProviderServer(bedrock.usual()) as server:
        yield server


@pytest.fixture
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """AWS's credentials file, and nothing else of AWS's configuration."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "credentials"
    bedrock.write_keys(path, bedrock.KEY_ID, bedrock.SECRET)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return path


@pytest.fixture
async def bedrock_engine(
    bedrock_server: ProviderServer, aws: Path, patience: tuple[str, ...]
) -> AsyncIterator[ProviderEngine]:
    prices = ("usd_per_million_input=3", "usd_per_million_output=15", "usd_per_million_cached=0.3")
    settings = bedrock.settings(bedrock_server, *patience, *prices)
    async with provider_engine("bedrock", bedrock.MODEL, *settings) as engine:
        yield engine
