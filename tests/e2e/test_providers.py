"""Managed providers behind a deployment, through gateway and SDK: no fault of theirs is hidden."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.e2e.system import System, eventually, running
from tests.fakes import bedrock_server, openai_server
from tests.fakes.provider_server import ProviderServer

KEY_FILE = "provider.key"
ASKED: Any = [{"role": "user", "content": "What is a gateway?"}]


@dataclass
class Providers:
    """A system before two providers, and a client of it."""

    system: System
    cloud: ProviderServer
    aws: ProviderServer
    client: OpenAI

    def key(self, text: str) -> None:
        """What the node's secrets say from now on."""
        (self.system.data / "secrets" / KEY_FILE).write_text(text)

    def ready(self, name: str) -> int:
        """The pid of a deployment's replica, once it is ready."""
        found = [r for r in self.system.replicas() if r["deployment"] == name]
        return int(found[0]["pid"]) if found else 0


@pytest.fixture(scope="module")
def providers(folder: Path) -> Iterator[Providers]:
    """`cloud` speaks OpenAI's API, `aws` Bedrock's; `sorry` answers where `guarded` fails."""
    keys = folder / "aws"
    bedrock_server.write_keys(keys, bedrock_server.KEY_ID, bedrock_server.SECRET)
    os.environ["AWS_SHARED_CREDENTIALS_FILE"] = str(keys)
    usual = openai_server.usual(pace=0.02, key=openai_server.KEY)
    try:
        with (
            ProviderServer(usual) as cloud,
            ProviderServer(bedrock_server.usual()) as aws,
            running(folder, "--engine", "simulated", "--name", "sim", within=60) as system,
            OpenAI(base_url=system.base_url, api_key="none", max_retries=0) as client,
        ):
            made = Providers(system, cloud, aws, client)
            made.key(openai_server.KEY)
            _deploy(made)
            yield made
    finally:
        del os.environ["AWS_SHARED_CREDENTIALS_FILE"]


def _deploy(made: Providers) -> None:
    cloud = {
        "engine": "openai",
        "model": openai_server.MODEL,
        "engine_args": {"base_url": made.cloud.url, "api_key_file": KEY_FILE, "retries": "0"},
    }
    aws = {
        "engine": "bedrock",
        "model": bedrock_server.MODEL,
        "engine_args": dict(each.split("=", 1) for each in bedrock_server.settings(made.aws)),
    }
    sorry = {"engine": "canned", "model": "sorry", "engine_args": {"text": "Sorry."}}
    guarded = {**cloud, "degrade": ["fallback:sorry"]}
    specs = {"cloud": cloud, "aws": aws, "sorry": sorry, "guarded": guarded}
    for name, spec in specs.items():
        made.system.change("POST", "deployments", {"name": name, **spec})
    eventually(lambda: all(map(made.ready, specs)), within=60, what="all are ready")


@pytest.mark.parametrize("name", ["cloud", "aws"])
def test_a_provider_answers_as_any_deployment_does(providers: Providers, name: str) -> None:
    raw = providers.client.chat.completions.with_raw_response.create(model=name, messages=ASKED)
    answer = raw.parse()
    assert raw.headers["x-penstock-backend"] == name
    assert "x-penstock-degraded" not in raw.headers
    assert answer.model == name
    assert answer.usage is not None
    assert answer.usage.completion_tokens > 0
    stream = providers.client.chat.completions.create(
        model=name, messages=ASKED, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text.split()
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] in ("stop", "length")
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.completion_tokens > 0


def test_one_small_request_tells_whether_it_works(providers: Providers) -> None:
    told = providers.system.change("POST", "deployments/aws/test")
    assert told["text"]
    assert told["completion_tokens"] > 0


def test_a_key_is_changed_without_a_restart(providers: Providers) -> None:
    pid = providers.ready("cloud")
    try:
        providers.key("sk-of-yesterday")
        with pytest.raises(openai.APIStatusError) as caught:
            providers.client.chat.completions.create(model="cloud", messages=ASKED)
        assert caught.value.status_code >= 500, "the client can do nothing about our key"
        assert "sk-of-yesterday" not in caught.value.response.text
    finally:
        providers.key(openai_server.KEY)
    eventually(lambda: _answers(providers, "cloud"), within=30, what="it answers again")
    assert providers.ready("cloud") == pid


def test_the_stream_of_a_killed_process_ends_in_band_and_it_comes_back(
    providers: Providers,
) -> None:
    stream = providers.client.chat.completions.create(model="cloud", messages=ASKED, stream=True)
    assert next(stream).choices
    pid = providers.ready("cloud")
    providers.system.kill(pid)
    with pytest.raises(openai.APIError):
        for _ in stream:
            pass
    eventually(lambda: providers.ready("cloud") not in (0, pid), within=60, what="it is back")
    eventually(lambda: _answers(providers, "cloud"), within=30, what="it answers again")


def test_while_a_provider_is_away_the_next_rung_answers_and_it_is_used_again(
    providers: Providers,
) -> None:
    providers.cloud.go_away()
    try:
        raw = providers.client.chat.completions.with_raw_response.create(
            model="guarded", messages=ASKED
        )
        assert raw.headers["x-penstock-backend"] == "sorry"
        assert raw.headers["x-penstock-degraded"]
        assert raw.parse().choices[0].message.content == "Sorry."
    finally:
        providers.cloud.come_back()
    eventually(lambda: _answers(providers, "guarded"), within=60, what="it is used again")


def _answers(providers: Providers, name: str) -> bool:
    """Whether the deployment itself does."""
    try:
        raw = providers.client.chat.completions.with_raw_response.create(model=name, messages=ASKED)
    except openai.APIStatusError:
        return False
    return bool(raw.headers["x-penstock-backend"] == name)


def test_no_secret_stands_in_any_file_but_its_own(providers: Providers) -> None:
    secrets = (openai_server.KEY.encode(), bedrock_server.SECRET.encode())
    for path in providers.system.data.rglob("*"):
        if path.is_file() and path.name != KEY_FILE:
            content = path.read_bytes()
            assert not any(secret in content for secret in secrets), path
