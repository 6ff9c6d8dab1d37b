"""Tenants, keys, access and usage in the admin API."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any

import pytest

from penstock.control.state.routing.snapshot import routes_of
from penstock.control.state.tenancy.tokens import Role
from penstock.control.state.tenancy.usage import Counts, Reading, UsageKey
from tests.control.admin.app_harness import Admin, assert_problem, running_admin
from tests.fakes.control_values import NOON

TENANTS = "/admin/v1/tenants"
ACME = f"{TENANTS}/acme"
KEYS = f"{ACME}/keys"
ACCESS = "/admin/v1/access"
FULL = {
    "requests_per_minute": 60,
    "tokens_per_minute": 1000,
    "tokens_per_day": 5000,
    "usd_per_day": 2.5,
    "max_streams": 4,
    "models": ["mini"],
    "adapters": ["pirate"],
    "priority": "high",
    "degrade": "never",
    "fallbacks": "allow",
    "shadow": "never",
    "cache_salt": "salty",
}


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        yield admin


async def create(admin: Admin, **limits: Any) -> dict[str, Any]:
    reply = await admin.client.post(TENANTS, json={"id": "acme", **limits})
    assert reply.status_code == 201, reply.text
    assert reply.headers["location"] == ACME
    return dict(reply.json())


async def create_key(admin: Admin, **asked: Any) -> dict[str, Any]:
    reply = await admin.client.post(KEYS, json=asked)
    assert reply.status_code == 201, reply.text
    assert reply.headers["cache-control"] == "no-store"
    return dict(reply.json())


async def test_a_tenant_is_made_with_limits_changed_and_deleted(admin: Admin) -> None:
    created = await create(admin, **FULL)
    assert {name: created[name] for name in FULL} == FULL
    assert (created["generation"], created["keys"], created["quota_used_up"]) == (1, 0, False)
    tag = (await admin.client.get(ACME)).headers["etag"]
    changed = await admin.client.put(
        ACME, json={"requests_per_minute": 6}, headers={"if-match": tag}
    )
    assert changed.status_code == 200
    body = changed.json()
    assert (body["generation"], body["requests_per_minute"], body["models"]) == (2, 6, [])
    assert body["fallbacks"] == "listed"
    assert body["uid"] == created["uid"]
    late = await admin.client.put(ACME, json=FULL, headers={"if-match": tag})
    assert_problem(late, 412, "read it again")
    assert [each["id"] for each in (await admin.client.get(TENANTS)).json()] == ["acme"]
    assert_problem(await admin.client.delete(ACME, headers={"if-match": tag}), 412)
    assert (await admin.client.delete(ACME)).status_code == 204
    assert_problem(await admin.client.get(ACME), 404, "no tenant 'acme'")
    trail = [(entry.who, entry.what) for entry in await admin.store.audit(3)]
    assert trail == [
        ("admin", "delete tenant acme"),
        ("admin", "put tenant acme"),
        ("admin", "create tenant acme"),
    ]


async def test_put_creates_and_post_does_not_overwrite(admin: Admin) -> None:
    put = await admin.client.put(ACME, json={}, headers={"if-none-match": "*"})
    assert (put.status_code, put.headers["location"]) == (201, ACME)
    again = await admin.client.put(ACME, json={}, headers={"if-none-match": "*"})
    assert_problem(again, 412, "tenant 'acme' exists")
    assert_problem(await admin.client.post(TENANTS, json={"id": "acme"}), 409, "'acme' exists")


async def test_a_dry_run_checks_everything_and_changes_nothing(admin: Admin) -> None:
    dry = {"dry_run": True}
    made = await admin.client.post(TENANTS, json={"id": "acme", "max_streams": 3}, params=dry)
    assert (made.status_code, made.json()["max_streams"]) == (201, 3)
    assert (await admin.client.get(TENANTS)).json() == []
    await create(admin)
    assert_problem(await admin.client.post(TENANTS, json={"id": "acme"}, params=dry), 409)
    put = await admin.client.put(ACME, json={"max_streams": 9}, params=dry)
    assert (put.json()["max_streams"], put.json()["generation"]) == (9, 2)
    assert (await admin.client.delete(ACME, params=dry)).status_code == 204
    assert (await admin.client.get(ACME)).json()["max_streams"] == 0


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"id": "Acme"}, "id is 'Acme'"),
        ({"id": ""}, "id is ''"),
        ({"id": "a", "requests_per_minute": -1}, "requests_per_minute"),
        ({"id": "a", "tokens_per_day": 2**60}, "tokens_per_day"),
        ({"id": "a", "priority": "urgent"}, "priority"),
        ({"id": "a", "degrade": "maybe"}, "degrade"),
        ({"id": "a", "fallbacks": "none"}, "fallbacks"),
        ({"id": "a", "models": ["Not One"]}, "models has 'Not One'"),
        ({"id": "a", "models": ["x", "x"]}, "models has 'x' twice"),
        ({"id": "a", "adapters": ["pirate@1"]}, "adapters has 'pirate@1'"),
        ({"id": "a", "cache_salt": "x" * 200}, "cache_salt"),
        ({"id": "a", "rpm": 5}, "rpm"),
    ],
)
async def test_what_cannot_be_is_said(admin: Admin, body: dict[str, Any], words: str) -> None:
    assert_problem(await admin.client.post(TENANTS, json=body), 422, words)


async def test_roles_are_kept(admin: Admin) -> None:
    await create(admin)
    viewer, operator = await admin.headers(Role.VIEWER), await admin.headers(Role.OPERATOR)
    assert (await admin.client.get(ACME, headers=viewer)).status_code == 200
    assert (await admin.client.get(KEYS, headers=viewer)).status_code == 200
    assert_problem(await admin.client.post(KEYS, json={}, headers=viewer), 403)
    assert (await admin.client.post(KEYS, json={}, headers=operator)).status_code == 201
    refused = await admin.client.put(ACCESS, json={"anonymous": "allowed"}, headers=operator)
    assert_problem(refused, 403, "needs role admin")


async def test_a_key_is_shown_once_and_is_nowhere_else(
    admin: Admin, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await create(admin)
    made = await create_key(admin, name="ci")
    secret = made["key"]
    assert secret.startswith("psk_")
    assert len(secret) > 40
    assert made["id"] not in secret
    digest = hashlib.sha256(secret.encode()).hexdigest()
    shown = (await admin.client.get(KEYS)).text
    audit = (await admin.client.get("/admin/v1/audit")).text
    assert (json.loads(shown)[0]["id"], json.loads(shown)[0]["name"]) == (made["id"], "ci")
    for told in (shown, audit, (await admin.client.get(ACME)).text, caplog.text):
        assert secret not in told
        assert digest not in told
    stored = json.dumps([each.document for each in admin.store.documents.values()])
    assert secret not in stored
    assert digest in stored
    (route,) = routes_of(admin.cluster.view()).tenants
    assert [key.digest for key in route.keys] == [digest]
    assert digest not in repr(route)


async def test_keys_expire_and_are_revoked(admin: Admin) -> None:
    await create(admin)
    made = await create_key(admin, expires_in_days=2)
    assert made["expires_at"] == (NOON + timedelta(days=2)).isoformat().replace("+00:00", "Z")
    until = await create_key(admin, expires_at="2026-01-02T14:00:00+01:00")
    assert until["expires_at"].startswith("2026-01-02T14:00:00")
    past = await admin.client.post(KEYS, json={"expires_at": "2026-01-02T12:00:00Z"})
    assert_problem(past, 422, "which is past")
    both = {"expires_at": "2027-01-02T12:00:00Z", "expires_in_days": 1}
    assert_problem(await admin.client.post(KEYS, json=both), 422, "both given")
    assert_problem(await admin.client.post(f"{TENANTS}/no/keys", json={}), 404, "no tenant 'no'")
    url = f"{KEYS}/{made['id']}"
    assert (await admin.client.delete(url)).status_code == 204
    assert_problem(await admin.client.delete(url), 404, made["id"])
    assert [each["id"] for each in (await admin.client.get(KEYS)).json()] == [until["id"]]
    assert (await admin.client.get(ACME)).json()["keys"] == 1


async def test_what_a_revoked_key_has_under_way_is_ended_only_where_that_is_asked_for(
    admin: Admin,
) -> None:
    await create(admin)
    kept, *ended = [(await create_key(admin))["id"] for _ in range(3)]
    await admin.client.delete(f"{KEYS}/{kept}")
    for key in ended:
        reply = await admin.client.delete(f"{KEYS}/{key}", params={"end_streams": "true"})
        assert reply.status_code == 204
    assert routes_of(admin.cluster.view()).ended_keys == tuple(ended)
    restored = type(admin.cluster)(admin.store, admin.clock)
    await restored.restore()  # gateways that were away hear of it after a restart, too
    assert routes_of(restored.view()).ended_keys == tuple(ended)


async def test_a_key_needs_no_body(admin: Admin) -> None:
    await create(admin)
    assert (await admin.client.post(KEYS)).json()["expires_at"] is None


async def test_keys_go_with_their_tenant_and_do_not_come_back_with_a_namesake(
    admin: Admin,
) -> None:
    await create(admin)
    await create_key(admin)
    await admin.client.delete(ACME)
    await create(admin)
    assert (await admin.client.get(KEYS)).json() == []
    kinds = {key.kind for key in admin.store.documents}
    assert "api_key" not in kinds


async def test_the_first_key_closes_the_door_until_somebody_opens_it(admin: Admin) -> None:
    async def anonymous() -> str:
        restored = type(admin.cluster)(admin.store, admin.clock)
        await restored.restore()  # it survives a restart
        required = routes_of(restored.view()).keys_required
        said: str = (await admin.client.get(ACCESS)).json()["anonymous"]
        assert (said == "refused") is required
        return said

    assert await anonymous() == "allowed"
    await create(admin)
    assert await anonymous() == "allowed"
    made = await create_key(admin)
    assert made["warning"].startswith(
        "this is the first key: from now on every gateway answers 401"
    )
    assert await anonymous() == "refused"
    await admin.client.delete(f"{KEYS}/{made['id']}")
    await admin.client.delete(ACME)
    assert await anonymous() == "refused"
    put = await admin.client.put(ACCESS, json={"anonymous": "allowed"})
    assert put.json() == {"anonymous": "allowed"}
    await create(admin)
    assert (await create_key(admin))["warning"] == ""
    assert await anonymous() == "allowed"
    await admin.client.put(ACCESS, json={"anonymous": "refused"})
    assert await anonymous() == "refused"
    entry, *_ = await admin.store.audit(1)
    assert (entry.who, entry.what) == ("admin", "refuse requests without a key")
    assert_problem(await admin.client.put(ACCESS, json={"anonymous": "sometimes"}), 422)


async def test_usage_is_told_by_day_key_and_model_also_of_deleted_tenants(admin: Admin) -> None:
    await create(admin)
    today = NOON.date()
    acme, other = UsageKey("acme", "key_1", "mini", "pirate@1"), UsageKey("", "", "mini", "")
    counts = Counts(2, 1, 30, 12, 16)
    readings = [
        Reading(today - timedelta(days=40), "i", acme, Counts(1)),
        Reading(today, "j", acme, counts),
        Reading(today, "j", other, Counts(1, 0, 5, 5, 0)),
    ]
    await admin.store.record(readings)
    await admin.client.delete(ACME)
    told = (await admin.client.get(f"{ACME}/usage")).json()
    numbers = counts._asdict()
    row = {"day": "2026-01-02", "tenant": "acme", "key_id": "key_1", "model": "mini"}
    assert told == {
        "from": "2025-12-04",
        "to": "2026-01-02",
        "rows": [{**row, "adapter": "pirate@1", **numbers}],
        "total": numbers,
    }
    asked = {"from": "2025-11-01", "to": "2025-12-01"}
    early = (await admin.client.get(f"{ACME}/usage", params=asked)).json()
    assert (early["from"], early["to"], early["total"]["requests"]) == (*asked.values(), 1)
    everybody = (await admin.client.get("/admin/v1/usage")).json()
    assert [each["tenant"] for each in everybody["rows"]] == ["", "acme"]
    assert everybody["total"]["prompt_tokens"] == 35
    assert_problem(await admin.client.get(f"{TENANTS}/nobody/usage"), 404, "'nobody'")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"from": "2026-01-03"}, "swap them"),
        ({"from": "2020-01-01"}, "366 days"),
        ({"to": "yesterday"}, "to"),
    ],
)
async def test_days_that_cannot_be_are_said(
    admin: Admin, asked: dict[str, str], words: str
) -> None:
    assert_problem(await admin.client.get("/admin/v1/usage", params=asked), 422, words)


async def test_the_document_has_the_new_resources(
    admin: Admin, document: Mapping[str, Any]
) -> None:
    for path in (TENANTS, f"{TENANTS}/{{tenant_id}}/keys", ACCESS, "/admin/v1/usage"):
        assert path in document["paths"]
    schemas = document["components"]["schemas"]
    assert {"NewTenant", "TenantModel", "CreatedKeyModel", "AccessModel", "UsageModel"} <= set(
        schemas
    )
    assert set(schemas["NewTenant"]["properties"]) == {"id", *FULL}
    assert {"from", "to"} <= set(schemas["UsageModel"]["properties"])
