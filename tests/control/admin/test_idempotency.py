"""Idempotency-Key: what is the same request, whose key it is, what is kept and for how long."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest

from penstock.control.admin.app import admin_app
from penstock.control.admin.idempotency import KEPT_FOR, MOST_KEPT
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.state.tenancy.tokens import Role
from penstock.control.store.store import IDEMPOTENCY
from tests.control.admin.app_harness import Admin, assert_problem, client_of, running_admin

PATH = "/admin/v1/deployments"
MINI = {"name": "mini", "engine": "simulated", "model": "penstock-mini"}
REPLAYED = "idempotent-replayed"


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        yield admin


async def create(
    admin: Admin, key: str = "k", client: httpx.AsyncClient | None = None, **spec: Any
) -> httpx.Response:
    headers = {"idempotency-key": key}
    return await (client or admin.client).post(PATH, json={**MINI, **spec}, headers=headers)


def kept(admin: Admin) -> list[str]:
    return [key.name for key in admin.store.documents if key.kind == IDEMPOTENCY]


async def restarted(admin: Admin) -> httpx.AsyncClient:
    """A client of a head that took up the same store."""
    cluster = ClusterStore(admin.store, admin.clock)
    await cluster.restore()
    return client_of(admin_app(replace(admin.services, cluster=cluster), "1"))


async def test_a_key_that_came_with_another_request_is_refused(admin: Admin) -> None:
    await create(admin)
    assert_problem(await create(admin, replicas=2), 422, "another request")
    url, key = f"{PATH}/mini/restart", {"idempotency-key": "k"}
    assert_problem(await admin.client.post(url, headers=key), 422, "another request")
    assert (await admin.client.get(f"{PATH}/mini")).json()["generation"] == 1


async def test_a_key_is_its_callers_own(admin: Admin) -> None:
    await create(admin)
    other = await admin.headers(Role.OPERATOR)
    reply = await admin.client.post(PATH, json=MINI, headers={**other, "idempotency-key": "k"})
    assert_problem(reply, 409, "'mini' exists")
    assert REPLAYED not in reply.headers


async def test_a_refusal_of_what_was_asked_is_given_again(admin: Admin) -> None:
    await create(admin, "first")
    assert_problem(await create(admin), 409, "exists")
    await admin.client.delete(f"{PATH}/mini")
    again = await create(admin)
    assert_problem(again, 409, "exists")
    assert again.headers[REPLAYED] == "true"


async def test_a_request_that_never_began_may_be_mended_under_its_key(admin: Admin) -> None:
    assert_problem(await create(admin, replicas=-1), 422, "replicas")
    assert (await create(admin)).status_code == 201


async def test_a_change_that_was_not_stored_is_made_when_it_is_sent_again(admin: Admin) -> None:
    admin.store.failing = True
    assert_problem(await create(admin), 503)
    admin.store.failing = False
    again = await create(admin)
    assert (again.status_code, REPLAYED in again.headers) == (201, False)


async def test_a_restarted_head_knows_what_was_answered(admin: Admin) -> None:
    first = await create(admin)
    async with await restarted(admin) as client:
        again = await create(admin, client=client)
        assert (again.status_code, again.content) == (201, first.content)
        assert again.headers[REPLAYED] == "true"
        assert_problem(await create(admin, client=client, replicas=2), 422)


async def test_a_head_that_ended_between_change_and_answer_does_not_act_again(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(*_: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr("penstock.control.admin.idempotency._answer", ends)
        assert_problem(await create(admin), 500)
    async with await restarted(admin) as client:
        for each in (admin.client, client):
            again = await create(admin, client=each)
            assert_problem(again, 409, "this was done", "not kept")
            assert again.headers[REPLAYED] == "true"
    assert len(admin.cluster.view().deployments) == 1


async def test_answers_are_kept_for_a_day_and_so_many_of_them(admin: Admin) -> None:
    await create(admin)
    admin.clock.advance(KEPT_FOR + timedelta(seconds=1))
    assert_problem(await create(admin, replicas=2), 409, "'mini' exists")
    for number in range(MOST_KEPT + 5):
        await create(admin, f"k-{number}", name="x")
    assert len(kept(admin)) == MOST_KEPT
    assert REPLAYED not in (await create(admin, "k-0", name="x")).headers
    assert REPLAYED in (await create(admin, f"k-{MOST_KEPT}", name="x")).headers


async def test_the_audit_trail_has_no_answers(admin: Admin) -> None:
    await create(admin)
    assert kept(admin)
    told = {entry.key.kind for entry in await admin.store.audit(100)}
    assert told == {"deployment", "token"}


@pytest.mark.parametrize("key", ["", "x" * 256])
async def test_a_key_that_is_none_is_refused(admin: Admin, key: str) -> None:
    assert_problem(await create(admin, key), 422, "idempotency-key")


async def test_an_upload_takes_no_key(admin: Admin) -> None:
    reply = await admin.client.post(
        "/admin/v1/adapters", files={"manifest": b"{}"}, headers={"idempotency-key": "k"}
    )
    assert_problem(reply, 422, "the same bytes again")
