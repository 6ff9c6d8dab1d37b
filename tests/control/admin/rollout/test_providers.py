"""Deployments that a managed provider answers for, as the admin API takes them."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.control.admin.app_harness import Admin, assert_problem, running_admin

URL = "/admin/v1/deployments"
KEY = "sk-proj-4242424242424242"
CLOUD = {
    "name": "cloud",
    "engine": "openai",
    "model": "gpt-4o-mini",
    "engine_args": {
        "api_key_env": "OPENAI_API_KEY",
        "usd_per_million_input": 0.15,
        "retries": 1,
        "tools": False,
    },
}


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    """An app that has just been made."""
    async with running_admin() as running:
        yield running


async def test_a_provider_is_an_engine_whose_settings_are_engine_arguments(admin: Admin) -> None:
    reply = await admin.client.post(URL, json=CLOUD)
    assert reply.status_code == 201, reply.text
    assert reply.json()["spec"]["engine_args"] == {
        "api_key_env": "OPENAI_API_KEY",
        "usd_per_million_input": "0.15",
        "retries": "1",
        "tools": "false",
    }
    again = await admin.client.put(f"{URL}/cloud", json=reply.json()["spec"])
    assert (again.status_code, again.json()["generation"]) == (200, 1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"engine_args": {"api_key_enf": "A"}}, "near to it: api_key_env"),
        ({"engine_args": {"api_key_env": "A", "retries": "many"}}, "retries is 'many'"),
        ({"engine_args": {}}, "needs a key"),
        ({"engine": "bedrock"}, "bedrock has no setting 'api_key_env'"),
        ({"engine": "anthropic"}, "one of vllm, simulated, bedrock, openai, canned"),
        ({"max_adapters": 2}, "openai takes no adapters"),
    ],
)
async def test_what_a_provider_cannot_be_is_refused_by_name(
    admin: Admin, change: dict[str, Any], words: str
) -> None:
    assert_problem(await admin.client.post(URL, json=CLOUD | change), 422, words)
    assert not admin.cluster.view().deployments


@pytest.mark.parametrize(
    "change",
    [
        {"engine_args": {"api_key": KEY}},
        {"engine_args": {"api_key_env": KEY}},
        {"engine_args": {"api_key_file": f"/{KEY}"}},
        {"engine_args": {"base_url": f"https://me:{KEY}@h/v1"}},
        {"engine_args": {KEY: "1"}},
        {"engine_args": {f"--{KEY}": "1"}},
        {"engine_args": {"api_key_env": "A", "organization": KEY}},
        {"engine": "bedrock", "engine_args": {"aws_secret_access_key": KEY}},
        {"engine": "canned", "engine_args": {"text": KEY}},
        {"model": KEY},
        {"labels": {"key": KEY}},
        {"api_key": KEY},
    ],
)
async def test_a_secret_in_a_spec_is_refused_and_stands_nowhere_afterwards(
    admin: Admin, change: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    reply = await admin.client.post(URL, json=CLOUD | change)
    assert_problem(reply, 422)
    await admin.client.put(f"{URL}/cloud", json=CLOUD | change)
    stored = json.dumps([dict(each.document) for each in admin.store.documents.values()])
    trail = repr(await admin.store.audit(100))
    assert "4242" not in reply.text + stored + trail + caplog.text
