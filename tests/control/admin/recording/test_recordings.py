"""Recordings in the admin API: started, refused with what is wrong, stopped, fetched, deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from penstock.control.state.cluster import ClusterView
from penstock.control.state.routing.snapshot import routes_of
from penstock.control.state.shadow.shadows import Compared
from penstock.control.state.tenancy.tokens import Role
from tests.control.admin.app_harness import Admin, assert_problem, running_admin

API = "/admin/v1"
RECORDINGS = f"{API}/recordings"
MONDAY = f"{RECORDINGS}/monday"
ASKED = {"name": "monday", "primary": "chat"}


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        spec = {"engine": "simulated", "model": "penstock-mini"}
        reply = await admin.client.put(f"{API}/deployments/chat", json=spec)
        assert reply.status_code == 201, reply.text
        yield admin


async def start(admin: Admin, **more: Any) -> dict[str, Any]:
    reply = await admin.client.post(RECORDINGS, json={**ASKED, **more})
    assert reply.status_code == 201, reply.text
    return dict(reply.json())


async def test_a_recording_is_started_listed_stopped_and_deleted(admin: Admin) -> None:
    made = await start(admin)
    assert (made["share_permille"], made["record"]) == (100, "redacted")
    assert made["until"] == {"requests": 10_000, "mib": 256, "at": None}
    assert (made["state"], made["message"]) == ("waiting", "the comparer starts")
    assert (await admin.client.get(RECORDINGS)).json() == [made]
    assert (await admin.client.get(MONDAY)).json() == made
    stopped = (await admin.client.post(f"{MONDAY}/stop")).json()
    assert (stopped["state"], stopped["message"]) == ("ended", "somebody stopped it")
    assert (await admin.client.delete(MONDAY)).status_code == 204
    assert_problem(await admin.client.get(MONDAY), 404, "no recording 'monday'")


async def test_gateways_are_told_of_it_from_when_the_comparer_knows_it_until_it_stops(
    admin: Admin,
) -> None:
    uid = (await start(admin))["uid"]
    assert routes_of(admin.cluster.view()).recordings == ()

    def step(view: ClusterView) -> ClusterView:
        compared = Compared("host:1", frozenset({uid}))
        return replace(view, shadows=replace(view.shadows, compared=compared))

    await admin.cluster.observe(step, "the comparer is there")
    (route,) = routes_of(admin.cluster.view()).recordings
    assert (route.recording.uid, "/v1/embeddings" in route.endpoints) == (uid, True)
    assert (await admin.client.get(MONDAY)).json()["state"] == "recording"
    await admin.client.post(f"{MONDAY}/stop")
    assert routes_of(admin.cluster.view()).recordings == ()


async def test_what_was_recorded_is_fetched_by_operators_alone(admin: Admin) -> None:
    await start(admin)
    assert_problem(await admin.client.get(f"{MONDAY}/file"), 503, "the comparer starts")
    admin.recorded.parts = [b'{"a": 1}\n', b'{"b": 2}\n{"c": 3}\n']
    reply = await admin.client.get(f"{MONDAY}/file")
    assert reply.headers["content-type"] == "application/jsonl"
    assert reply.content == b'{"a": 1}\n{"b": 2}\n{"c": 3}\n'
    viewer = await admin.headers(Role.VIEWER)
    assert_problem(await admin.client.get(f"{MONDAY}/file", headers=viewer), 403, "operator")


async def test_a_tenant_that_says_never_cannot_be_named(admin: Admin) -> None:
    tenant = {"shadow": "never"}
    assert (await admin.client.put(f"{API}/tenants/acme", json=tenant)).is_success
    reply = await admin.client.post(RECORDINGS, json={**ASKED, "tenants": ["acme"]})
    assert_problem(reply, 422, "tenants is 'acme'", "never recorded (shadow=never)")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"primary": "no"}, "primary is 'no'"),
        ({"primary": "chat:no"}, "primary is 'chat:no'"),
        ({"record": "none"}, "record is 'none': it must be redacted or full"),
        ({"endpoints": ["/v1/rerank"]}, "endpoints has '/v1/rerank'"),
        ({"until": {"requests": 0}}, "until.requests: Input should be greater"),
        ({"until": {"at": "2020-01-01T00:00:00Z"}}, "until.at is 2020-01-01T00:00:00+00:00"),
        ({"share_permille": 0}, "share_permille: Input should be greater"),
        ({"name": "No"}, "name is 'No'"),
        ({"candidate": "chat"}, "candidate: Extra inputs are not permitted"),
    ],
)
async def test_what_cannot_be_is_refused_with_what_is_wrong(
    admin: Admin, wrong: dict[str, Any], words: str
) -> None:
    reply = await admin.client.post(RECORDINGS, json={**ASKED, **wrong})
    assert_problem(reply, 422, words)


async def test_a_name_is_taken_once(admin: Admin) -> None:
    await start(admin)
    assert_problem(await admin.client.post(RECORDINGS, json=ASKED), 409, "recording 'monday'")
