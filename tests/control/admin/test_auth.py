"""Who gets into the admin API, as whom, and what the audit trail says of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import pytest

from penstock.control.state.tenancy.tokens import Role
from tests.control.admin.app_harness import (
    SECRET,
    Admin,
    assert_problem,
    bearer,
    client_of,
    running_admin,
)

MINI = {"name": "mini", "engine": "simulated", "model": "penstock-mini"}
DEPLOYMENTS = "/admin/v1/deployments"
TOKENS = "/admin/v1/tokens"


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        yield admin


@pytest.fixture
async def stranger(admin: Admin) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(admin.app, secret="") as client:
        yield client


async def test_no_door_of_the_api_is_open_without_a_token(
    admin: Admin, stranger: httpx.AsyncClient, document: Mapping[str, Any]
) -> None:
    asked = 0
    for path, methods in document["paths"].items():
        for method in methods:
            reply = await stranger.request(method, path.replace("{", "").replace("}", ""))
            if path.startswith("/admin/"):
                assert_problem(reply, 401, "needs a token")
                assert reply.headers["www-authenticate"] == 'Bearer realm="penstock"'
                asked += 1
            else:
                assert (method, path, reply.status_code) == ("get", "/livez", 200)
    assert asked >= 10
    assert not admin.cluster.view().deployments


async def test_the_documents_are_open_and_have_their_authorize_button(
    stranger: httpx.AsyncClient,
) -> None:
    assert (await stranger.get("/docs")).status_code == 200
    document = (await stranger.get("/openapi.json")).json()
    assert "/admin/v1/deployments/{name}/scale" in document["paths"]
    assert document["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert bool(operation.get("security")) == path.startswith("/admin/")


@pytest.mark.parametrize(
    "said",
    [
        "Bearer",
        "Bearer ",
        f"Basic {SECRET}",
        SECRET,
        f"Bearer {SECRET}x",
        f"Bearer {SECRET[:-1]}",
        "Bearer \xff",
    ],
)
async def test_what_is_not_exactly_a_token_lets_nobody_in(
    stranger: httpx.AsyncClient, said: str
) -> None:
    headers = [(b"authorization", said.encode("latin-1"))]
    reply = await stranger.get(DEPLOYMENTS, headers=headers)
    assert_problem(reply, 401)
    assert SECRET not in reply.text


async def test_two_authorization_headers_are_one_too_many(stranger: httpx.AsyncClient) -> None:
    headers = [("authorization", f"Bearer {SECRET}")] * 2
    assert_problem(await stranger.get(DEPLOYMENTS, headers=headers), 401, "cannot be used")


async def test_a_viewer_reads_and_changes_nothing(admin: Admin) -> None:
    headers = await admin.headers(Role.VIEWER)
    await admin.client.post(DEPLOYMENTS, json=MINI)
    for path in ("deployments", "deployments/mini", "replicas", "nodes", "gateways", "version"):
        assert (await admin.client.get(f"/admin/v1/{path}", headers=headers)).status_code == 200
    refused = [
        await admin.client.post(DEPLOYMENTS, json=MINI, headers=headers),
        await admin.client.put(f"{DEPLOYMENTS}/mini", json=MINI, headers=headers),
        await admin.client.post(f"{DEPLOYMENTS}/mini/scale", json={"replicas": 2}, headers=headers),
        await admin.client.delete(f"{DEPLOYMENTS}/mini", headers=headers),
        await admin.client.get(TOKENS, headers=headers),
    ]
    for reply in refused:
        assert_problem(reply, 403, "'some-viewer' has role viewer")
        assert "insufficient_scope" in reply.headers["www-authenticate"]
    assert admin.cluster.view().deployment("mini").spec.replicas == 1


async def test_an_operator_changes_deployments_but_no_tokens(admin: Admin) -> None:
    headers = await admin.headers(Role.OPERATOR)
    created = await admin.client.post(DEPLOYMENTS, json=MINI, headers=headers)
    assert created.status_code == 201
    deleted = await admin.client.delete(f"{DEPLOYMENTS}/mini", headers=headers)
    assert deleted.status_code == 204
    body = {"name": "x", "role": "admin"}
    assert_problem(await admin.client.post(TOKENS, json=body, headers=headers), 403, "role admin")


async def test_the_audit_trail_names_the_token(admin: Admin) -> None:
    headers = await admin.headers(Role.OPERATOR)
    await admin.client.post(DEPLOYMENTS, json=MINI, headers=headers)
    entry, *_ = await admin.store.audit(1)
    assert (entry.who, entry.what) == ("some-operator", "create deployment mini")


async def test_a_created_token_works_until_it_is_revoked(admin: Admin) -> None:
    reply = await admin.client.post(TOKENS, json={"name": "alice", "role": "viewer"})
    assert reply.status_code == 201
    assert reply.headers["cache-control"] == "no-store"
    made = reply.json()
    assert reply.headers["location"] == f"{TOKENS}/{made['id']}"
    secret = made["token"]
    assert secret.startswith("pst_")
    assert len(secret) > 40
    assert (await admin.client.get(DEPLOYMENTS, headers=bearer(secret))).status_code == 200
    listed = await admin.client.get(TOKENS)
    roles = {token["name"]: token["role"] for token in listed.json()}
    assert roles == {"admin": "admin", "alice": "viewer"}
    assert secret not in listed.text
    assert (await admin.client.delete(f"{TOKENS}/{made['id']}")).status_code == 204
    assert_problem(await admin.client.get(DEPLOYMENTS, headers=bearer(secret)), 401, "revoked")
    again = await admin.client.delete(f"{TOKENS}/{made['id']}")
    assert again.status_code == 204
    assert_problem(await admin.client.delete(f"{TOKENS}/none"), 404, "'none'")


async def test_no_token_is_stored_or_told_by_the_audit_trail(admin: Admin) -> None:
    made = (await admin.client.post(TOKENS, json={"name": "alice", "role": "viewer"})).json()
    stored = str(await admin.store.load()) + str(await admin.store.audit(100))
    assert made["token"] not in stored
    assert SECRET not in stored


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"name": "", "role": "viewer"}, 422, "name is ''"),
        ({"name": "a b", "role": "viewer"}, 422, "name is 'a b'"),
        ({"name": "x", "role": "root"}, 422, "role"),
        ({"role": "viewer"}, 422, "name"),
        ({"name": "admin", "role": "viewer"}, 409, "'admin' exists"),
    ],
)
async def test_a_token_that_cannot_be_made_is_explained(
    admin: Admin, body: dict[str, str], status: int, word: str
) -> None:
    assert_problem(await admin.client.post(TOKENS, json=body), status, word)


async def test_the_last_token_of_role_admin_stays(admin: Admin) -> None:
    (first,) = (await admin.client.get(TOKENS)).json()
    url = f"{TOKENS}/{first['id']}"
    assert_problem(await admin.client.delete(url), 409, "last token of role admin")
    await admin.headers(Role.ADMIN)
    assert (await admin.client.delete(url)).status_code == 204
    assert_problem(await admin.client.get(TOKENS), 401)


async def test_a_store_that_fails_makes_no_token_and_keeps_those_there_are(admin: Admin) -> None:
    admin.store.failing = True
    body = {"name": "alice", "role": "viewer"}
    assert_problem(await admin.client.post(TOKENS, json=body), 503)
    admin.store.failing = False
    assert [t["name"] for t in (await admin.client.get(TOKENS)).json()] == ["admin"]


async def test_code_of_a_model_runs_only_where_role_admin_says_so(admin: Admin) -> None:
    operator = await admin.headers(Role.OPERATOR)
    code = {"engine": "vllm", "model": "m", "engine_args": {"trust-remote-code": True}}
    url = f"{DEPLOYMENTS}/mini"
    posted = await admin.client.post(DEPLOYMENTS, json={"name": "mini", **code}, headers=operator)
    assert_problem(posted, 403, "'mini'", "role admin")
    assert_problem(await admin.client.put(url, json=code, headers=operator), 403)
    assert (await admin.client.put(url, json=code)).status_code == 201
    scaled = await admin.client.put(url, json={**code, "replicas": 2}, headers=operator)
    assert scaled.status_code == 200
    other = await admin.client.put(url, json={**code, "model": "other"}, headers=operator)
    assert_problem(other, 403)


async def test_who_may_set_a_field_is_as_it_is_declared(
    admin: Admin, stranger: httpx.AsyncClient
) -> None:
    operator = await admin.headers(Role.OPERATOR)
    made = await stranger.post(DEPLOYMENTS, json=MINI, headers=operator)
    asked = {"anonymous": "allowed"}
    refused = await stranger.put("/admin/v1/access", json=asked, headers=operator)
    assert made.status_code == 201
    assert_problem(refused, 403, "needs role admin")


async def test_a_token_for_replicas_opens_no_door_of_the_api(admin: Admin) -> None:
    headers = await admin.headers(Role.ROUTER)
    for method, path in (("GET", DEPLOYMENTS), ("POST", TOKENS), ("GET", "/admin/v1/version")):
        reply = await admin.client.request(method, path, headers=headers)
        assert_problem(reply, 403, "role router", "for the MicroServing of replicas")
    assert not any(Role.ROUTER.includes(role) or role.includes(Role.ROUTER) for role in Role)
