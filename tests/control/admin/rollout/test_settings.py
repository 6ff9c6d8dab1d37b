"""Settings of a deployment, changed while it serves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from penstock.control.state.rollout.deployment import DeploymentName
from penstock.control.state.tenancy.tokens import Role
from tests.control.admin.app_harness import Admin, assert_problem, running_admin

MINI = {"name": "mini", "engine": "simulated", "model": "m"}
WITHOUT_NAME = {"engine": "simulated", "model": "m"}
URL = "/admin/v1/deployments/mini/settings"
CHAT = {
    "max_queued": 100,
    "wait_budget_ms": 2000,
    "kv_pressure": 0.93,
    "max_prompt_tokens": 3600,
    "selection_policy": "prefix_aware",
    "session_affinity": "revision",
    "canary": [{"deployment": "next", "permille": 50}],
    "degrade": {"default": ["fallback:next", "reject"], "token_budget_exceeded": ["trim"]},
    "context": "trim",
    "budget_usd_per_day": 2.5,
    "budget_tokens_per_day": 2**40,
    "usd_per_million_input": 0.25,
    "usd_per_million_output": 2,
    "usd_per_million_cached": 0.025,
}


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    """An app with one deployment."""
    async with running_admin() as running:
        await running.client.post("/admin/v1/deployments", json=MINI | {"max_n": 4})
        yield running


async def test_settings_that_are_named_change_and_others_stay(admin: Admin) -> None:
    reply = await admin.client.patch(URL, json=CHAT)
    assert reply.status_code == 200, reply.text
    spec = reply.json()["spec"]
    assert {key: spec[key] for key in CHAT} == CHAT
    assert (spec["max_n"], spec["queue_deadline_ms"], spec["model"]) == (4, 30_000, "m")


async def test_a_change_of_settings_makes_a_generation_and_no_template(admin: Admin) -> None:
    known = admin.cluster.view().deployments[DeploymentName("mini")]
    reply = (await admin.client.patch(URL, json=CHAT)).json()
    assert (reply["generation"], reply["template_digest"]) == (2, known.template_digest)
    again = (await admin.client.patch(URL, json=CHAT)).json()
    assert again["generation"] == 2
    put = await admin.client.put(URL.removesuffix("/settings"), json=reply["spec"])
    assert put.json()["generation"] == 2


async def test_what_cannot_be_set_is_named_and_changes_nothing(admin: Admin) -> None:
    for body, words in (
        ({"replicas": 2}, "replicas"),
        ({"kv_pressure": 2}, "kv_pressure"),
        ({"selection_policy": "best"}, "selection_policy is 'best'"),
        ({"session_affinity": "replica"}, "session_affinity is 'replica'"),
        ({"canary": [{"deployment": "mini", "permille": 1}]}, "itself"),
        ({"degrade": ["fallback:mini"]}, "itself"),
        ({"degrade": ["retry"]}, "the rung 'retry'"),
        ({"degrade": {"queue_fill": ["trim"]}}, "queue_full"),
        ({"degrade": "trim"}, "degrade"),
        ({"context": "cut"}, "context is 'cut'"),
        ({"budget_usd_per_day": -1.0}, "budget_usd_per_day"),
        ({"budget_usd_per_day": 9e6 + 1}, "budget_usd_per_day"),
        ({"budget_tokens_per_day": 0.5}, "budget_tokens_per_day"),
    ):
        assert_problem(await admin.client.patch(URL, json=body), 422, words)
    assert_problem(await admin.client.patch(URL.replace("mini", "none"), json={}), 404, "'none'")
    stale = await admin.client.patch(URL, json=CHAT, headers={"if-match": "7"})
    assert_problem(stale, 412)
    viewer = await admin.headers(Role.VIEWER)
    assert_problem(await admin.client.patch(URL, json=CHAT, headers=viewer), 403, "operator")
    assert admin.cluster.view().deployments[DeploymentName("mini")].generation == 1


async def test_a_refusal_names_the_value_that_was_given_but_no_secret(admin: Admin) -> None:
    for body, words in (
        ({"max_queued": -1}, "max_queued: Input should be greater than or equal to 0, not -1"),
        ({"max_n": "4"}, "max_n: Input should be a valid integer, not '4'"),
        ({"degrade": "x"}, "degrade: Input should be a valid list, not 'x'; degrade: "),
        ({"context": 7}, "context: Input should be a valid string, not 7"),
    ):
        assert_problem(await admin.client.patch(URL, json=body), 422, words)
    long = (await admin.client.patch(URL, json={"max_n": "x" * 5000})).json()["detail"]
    assert len(long) < 200
    secrets: list[dict[str, Any]] = [
        {"max_n": "sk-abcdefgh12345678"},
        {"api_key": "hunter2"},
        {"max_n": {"token": "hunter2"}},
    ]
    for hidden in secrets:
        told = (await admin.client.patch(URL, json=hidden)).json()["detail"]
        assert "hunter2" not in told
        assert "sk-" not in told


async def test_the_documents_tell_defaults_ranges_and_policies(document: Mapping[str, Any]) -> None:
    fields = document["components"]["schemas"]["SettingsModel"]["properties"]
    assert fields["max_queued"]["default"] == 100
    assert (fields["kv_pressure"]["minimum"], fields["kv_pressure"]["maximum"]) == (0, 1)
    assert "prefix_aware" in fields["selection_policy"]["enum"]
    assert all(field.get("description") for field in fields.values())


async def test_a_setting_that_is_named_replaces_the_whole_of_what_it_was(admin: Admin) -> None:
    await admin.client.patch(URL, json=CHAT)
    told = (await admin.client.patch(URL, json={"degrade": ["fallback:sorry"]})).json()["spec"]
    assert (told["degrade"], told["context"]) == (["fallback:sorry"], "trim")
    spec = (await admin.client.put(URL.removesuffix("/settings"), json=WITHOUT_NAME)).json()["spec"]
    assert (spec["degrade"], spec["context"], spec["budget_usd_per_day"]) == ([], "reject", 0)


async def test_fallbacks_that_lead_back_are_refused_with_their_way(admin: Admin) -> None:
    base = "/admin/v1/deployments"
    known = {"degrade": ["fallback:b"]}
    assert (await admin.client.patch(URL, json=known)).status_code == 200
    b = {**MINI, "name": "b", "degrade": {"budget": ["fallback:c"]}}
    assert (await admin.client.post(base, json=b)).status_code == 201
    way = "c -> mini -> b -> c"
    c = {"engine": "simulated", "model": "m", "degrade": ["fallback:mini"]}
    assert_problem(await admin.client.post(base, json={**c, "name": "c"}), 422, way)
    assert_problem(await admin.client.put(f"{base}/c", json=c), 422, way)
    assert (await admin.client.put(f"{base}/c", json={**c, "degrade": []})).status_code == 201
    refused = await admin.client.patch(f"{base}/c/settings", json={"degrade": ["fallback:mini"]})
    assert_problem(refused, 422, way)
