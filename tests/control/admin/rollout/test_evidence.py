"""Evidence of revisions and the policy that asks for it, in the admin API and the command line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from tests.control.admin.app_harness import Admin, assert_problem, running_admin
from tests.fakes.control_values import MINI, in_service

URL = "/admin/v1/deployments/mini"
FOUND = {"kind": "regression", "passed": True, "at": "2026-01-01T00:00:00Z"}
MODEL = {"name": "mini", "engine": "simulated", "model": "a"}


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    """A deployment whose first revision has served."""
    async with running_admin() as running:
        made = await running.client.post("/admin/v1/deployments", json=MODEL)
        assert made.status_code == 201, made.text
        view = running.cluster.view()
        running.cluster.replace(view.with_deployment(in_service(view.deployments[MINI])))
        yield running


async def put(admin: Admin, number: int = 1, **fields: Any) -> Any:
    return await admin.client.put(f"{URL}/revisions/{number}/evidence", json={**FOUND, **fields})


async def test_a_change_of_what_clients_have_takes_evidence_where_the_policy_says_so(
    admin: Admin,
) -> None:
    policy = {"evidence_for": ["live"], "kind": "", "not_older_than_hours": 0}
    reply = await admin.client.put("/admin/v1/deployment-policy", json=policy)
    assert (reply.status_code, reply.json()) == (200, policy)
    assert (await admin.client.get("/admin/v1/deployment-policy")).json() == policy
    other = {**MODEL, "model": "b"}
    refused = await admin.client.put(URL, json={k: v for k, v in other.items() if k != "name"})
    assert_problem(refused, 409, "mini cannot go live with it: it has no evidence")
    made = await admin.client.post("/admin/v1/deployments", json={**other, "name": "trial"})
    assert made.status_code == 201
    told = await admin.client.put(
        "/admin/v1/deployments/trial/revisions/1/evidence",
        json={**FOUND, "at": "2025-12-31T00:00:00Z"},
    )
    assert told.status_code == 201, told.text
    done = await admin.client.put(URL, json={k: v for k, v in other.items() if k != "name"})
    assert done.status_code == 200, done.text
    (listed,) = (await admin.client.get(f"{URL}/revisions/2/evidence")).json()
    assert (listed["deployment"], listed["revision"], listed["passed"]) == ("trial", 1, True)


async def test_what_was_found_is_kept_with_its_report(admin: Admin) -> None:
    told = await put(admin, report={"wins": 7})
    assert told.status_code == 201, told.text
    assert told.json()["template_digest"] == admin.cluster.view().deployments[MINI].template_digest
    (listed,) = (await admin.client.get(f"{URL}/revisions/1/evidence")).json()
    assert (listed["has_report"], listed["report"]) == (True, None)
    one = f"{URL}/revisions/1/evidence/{listed['id']}"
    assert (await admin.client.get(one)).json()["report"] == {"wins": 7}
    assert_problem(await admin.client.get(f"{URL}/revisions/1/evidence/ev_x"), 404, "ev_x")
    assert_problem(await put(admin, 9), 404, "no revision 9")
    assert_problem(await put(admin, kind=""), 422, "kind")
    tried = await admin.client.put(
        f"{URL}/revisions/1/evidence", json=FOUND, params={"dry_run": "true"}
    )
    assert tried.status_code in (200, 201)
    assert len(admin.cluster.view().evidence.told) == 1


async def test_reports_of_adapters_and_of_templates_do_not_throw_each_other_away(
    admin: Admin,
) -> None:
    first = (await put(admin, report={"wins": 7})).json()
    async with admin.services.adapters.kept({"another": 1}):
        pass
    one = await admin.client.get(f"{URL}/revisions/1/evidence/{first['id']}")
    assert one.json()["report"] == {"wins": 7}


async def test_it_is_known_again_to_a_head_that_starts(admin: Admin) -> None:
    await put(admin, report={"wins": 7})
    await admin.client.put("/admin/v1/deployment-policy", json={"evidence_for": ["canary"]})
    before = admin.cluster.view().evidence
    await admin.cluster.restore()
    assert admin.cluster.view().evidence == replace(before, told=dict(before.told))
