"""Who the bedrock engine is for AWS, and which hosts hear of it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from penstock.replica.providers.provider_engine import ProviderEngine
from penstock.replica.values import CannotLoad
from tests.fakes import bedrock_server as bedrock
from tests.fakes.bedrock_server import KEY_ID, MODEL, SECRET
from tests.fakes.provider_calls import (
    asked,
    chat,
    end_of,
    failure,
    provider_engine,
)
from tests.fakes.provider_server import ProviderServer

_PNG = b"\x89PNG\r\n\x1a\nnot really"
_WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells it.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


async def test_rotated_credentials_count_without_a_restart(
    bedrock_engine: ProviderEngine, bedrock_server: ProviderServer, aws: Path
) -> None:
    bedrock_server.next.append(bedrock.usual(keys={"AKIAROTATED": "new-secret"}))
    assert (await failure(bedrock_engine, chat())).code == "upstream_credentials"
    bedrock.write_keys(aws, "AKIAROTATED", "new-secret")
    bedrock_server.next.append(bedrock.usual(keys={"AKIAROTATED": "new-secret"}))
    end_of(await asked(bedrock_engine, chat(max_tokens=1)))
    aws.write_text("")
    before = len(bedrock_server.asked)
    assert (await failure(bedrock_engine, chat())).code == "upstream_credentials"
    assert len(bedrock_server.asked) == before


async def test_a_role_is_assumed_with_the_credentials_of_a_profile(
    bedrock_server: ProviderServer, aws: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", bedrock_server.url)
    bedrock.write_keys(aws, KEY_ID, SECRET, "team")
    bedrock_server.next.append(bedrock.assumed("ASIAOFROLE", "secret-of-role"))
    bedrock_server.next.append(bedrock.usual(keys={"ASIAOFROLE": "secret-of-role"}))
    settings = bedrock.settings(bedrock_server, "profile=team", "role_arn=arn:aws:iam::1:role/x")
    async with provider_engine("bedrock", MODEL, *settings) as bedrock_engine:
        end_of(await asked(bedrock_engine, chat(max_tokens=1)))
    assume, converse = bedrock_server.asked
    assert b"Action=AssumeRole" in assume.body
    assert KEY_ID in assume.headers["authorization"]
    assert converse.headers["x-amz-security-token"] == "token-of-role"


async def test_what_the_token_service_says_is_not_logged(
    bedrock_server: ProviderServer,
    aws: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", bedrock_server.url)
    bedrock_server.next.append(bedrock.refuse(403, "AccessDenied", "words-of-the-token-service"))
    settings = bedrock.settings(bedrock_server, "role_arn=arn:aws:iam::1:role/x")
    async with provider_engine("bedrock", MODEL, *settings) as bedrock_engine:
        await failure(bedrock_engine, chat())
    assert "Refreshing temporary credentials failed" in caplog.text
    assert "words-of-the-token-service" not in caplog.text
    assert "Traceback" not in caplog.text


async def test_nothing_is_sent_to_hosts_that_the_node_does_not_name(
    bedrock_server: ProviderServer, aws: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", bedrock_server.url.replace("127.0.0.1", "localhost"))
    settings = bedrock.settings(bedrock_server, "role_arn=arn:aws:iam::1:role/x")
    flags = ("--provider-hosts", "127.0.0.1")
    async with provider_engine("bedrock", MODEL, *settings, flags=flags) as bedrock_engine:
        failed = await failure(bedrock_engine, chat())
    assert (failed.status, failed.code) == (502, "upstream_host_not_allowed")
    assert "localhost" in failed.message
    assert not bedrock_server.asked
    flags = ("--provider-hosts", "*.example.com")
    with pytest.raises(CannotLoad, match=r"127\.0\.0\.1"):
        async with provider_engine("bedrock", MODEL, *settings, flags=flags):
            pass


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (("region=eu-west-1", "guardrail_id=x"), "go together"),
        ((), "region"),
        (("region=eu-west-1", "profile=nobody"), "nobody"),
        (("region=eu-west-1", "endpoint_url=https://a:pw@x.example"), "a user or a password"),
        (("region=eu-west-1", "base_url=x"), "no setting 'base_url'"),
    ],
)
async def test_wrong_settings_are_refused_by_name(
    aws: Path, settings: tuple[str, ...], named: str
) -> None:
    with pytest.raises(CannotLoad, match=named):
        async with provider_engine("bedrock", MODEL, *settings):
            pass
