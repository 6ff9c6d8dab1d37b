"""The settings of the openai engine: where it sends to, and which secrets go along."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.replica.values import CannotLoad
from tests.fakes.openai_server import KEY, MODEL
from tests.fakes.provider_calls import asked, chat, provider_engine
from tests.fakes.provider_server import ProviderServer


@pytest.mark.parametrize(
    ("settings", "flags", "named"),
    [
        (("base_url=ftp://x/v1",), (), "base_url"),
        (("base_url=https://x.example/v1?key=pw",), (), "nothing behind it"),
        (("base_url=https://me:pw@x.example/v1",), (), "a user or a password"),
        (("base_url=https://x.example/v1",), ("--provider-hosts", "*.y.example"), "x.example"),
        (("api_key_file=../key",), (), "no relative path"),
        (("api_key_file=/etc/passwd",), (), "no relative path"),
        (("api_key_file=link",), (), "leads out"),
        (("api_key_file=none",), (), "cannot read the secret file none"),
        (("headers_file=key",), (), "line 1 of the headers file key"),
        (("api_key_env=NO_SUCH_API_KEY",), (), "NO_SUCH_API_KEY is not set"),
        (("api_key_env=HOME",), (), "HOME is none that this node lets deployments name"),
        (("base_url=http://0xa9fea9fe/v1",), (), "metadata service"),
        (("api_key_env=AWS_SECRET_ACCESS_KEY",), (), "api_key_env is AWS_SECRET_ACCESS_KEY: .*"),
        (("api_key_env=HF_TOKEN",), (), "are for others"),
        (("api_key_env=PENSTOCK_KEY",), (), "are for others"),
        (("api_key_env=A", "api_key_file=key"), (), "not both"),
        (("region=eu",), (), "no setting 'region'"),
    ],
)
async def test_wrong_settings_are_refused_by_name_and_show_no_secret(
    secrets: Path, settings: tuple[str, ...], flags: tuple[str, ...], named: str
) -> None:
    (secrets / "link").symlink_to("/etc/hostname")
    all_flags = ("--secrets-dir", str(secrets), *flags)
    with pytest.raises(CannotLoad, match=named) as caught:
        async with provider_engine("openai", MODEL, *settings, flags=all_flags):
            pass
    assert KEY not in str(caught.value)
    assert "pw" not in str(caught.value).split("password")[0]


async def test_a_proxy_that_the_node_does_not_name_is_refused(
    server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://me:pw@proxy.example:3128")
    base_url = "base_url=http://api.example/v1"
    flags = ("--provider-hosts", "api.example,127.0.0.1")
    with pytest.raises(CannotLoad, match=r"the proxy proxy\.example .* --provider-hosts") as caught:
        async with asyncio.timeout(5), provider_engine("openai", MODEL, base_url, flags=flags):
            pass
    assert "pw" not in str(caught.value)
    monkeypatch.setenv("http_proxy", server.url)
    async with provider_engine("openai", MODEL, base_url, flags=flags) as engine:
        await asked(engine, chat())
    assert len(server.asked) == 1


async def test_headers_of_a_file_go_along_and_the_environments_do_not(
    server: ProviderServer, secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "of-the-environment")
    monkeypatch.setenv(
        "OPENAI_CUSTOM_HEADERS", "x-other: of-the-environment\nAuthorization: of-the-environment"
    )
    (secrets / "headers").write_text("# for the proxy\nx-team: blue\n\n")
    settings = (f"base_url={server.url}/v1", "headers_file=headers", "organization=org-1")
    flags = ("--secrets-dir", str(secrets), "--provider-hosts", "127.0.0.1")
    async with provider_engine("openai", MODEL, *settings, flags=flags) as engine:
        await asked(engine, chat())
    headers = server.asked[-1].headers
    assert headers["x-team"] == "blue"
    assert headers["openai-organization"] == "org-1"
    assert "authorization" not in headers
    assert "of-the-environment" not in headers.values()
