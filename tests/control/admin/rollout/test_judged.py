"""A revision that a canary judges, in the admin API: what may be done with it, and what becomes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock.control.state.canary.canary import Canary
from penstock.control.state.rollout.deployment import Deployment
from tests.control.admin.app_harness import Admin, assert_problem, running_admin
from tests.fakes.control_values import MINI, in_service

URL = "/admin/v1/deployments/mini"
ABORT = {"abort_canary": "true"}


def of(model: str) -> dict[str, Any]:
    return {"engine": "simulated", "model": model, "update": {"canary": "careful"}}


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    """A deployment of model a that has served, and whose revision of model b is judged."""
    async with running_admin() as running:
        assert (await running.client.put(URL, json=of("a"))).status_code == 201
        view = running.cluster.view()
        running.cluster.replace(view.with_deployment(in_service(view.deployments[MINI])))
        made = await running.client.put(URL, json=of("b"))
        assert made.json()["status"]["rollout"]["state"] == "judged"
        yield running


def mini(admin: Admin) -> Deployment:
    return admin.cluster.view().deployments[MINI]


def careful(admin: Admin) -> Canary:
    return admin.cluster.view().canaries.canary("careful")


async def test_its_rollout_is_its_canarys(admin: Admin) -> None:
    for verb in ("rollback", "restart", "pause"):
        reply = await admin.client.post(f"{URL}/{verb}")
        assert_problem(reply, 409, "canary careful's, which is running")
    assert_problem(await admin.client.put(URL, json=of("c")), 409, "canary careful's")
    assert_problem(await admin.client.delete(URL), 409, "canary careful's")
    scaled = await admin.client.post(f"{URL}/scale", json={"replicas": 3})
    assert scaled.status_code == 200, scaled.text
    assert (mini(admin).revision.number, careful(admin).is_active) == (2, True)


async def test_what_aborts_it_changes_what_its_caller_has_read(admin: Admin) -> None:
    first, tag = careful(admin).uid, (await admin.client.get(URL)).headers["etag"]
    reply = await admin.client.put(URL, json=of("c"), params=ABORT, headers={"if-match": tag})
    assert reply.status_code == 200, reply.text
    assert [r.state for r in mini(admin).revisions] == ["served", "replaced", "judged"]
    run = careful(admin)
    assert (run.is_active, run.revision, run.uid != first) == (True, 3, True)


async def test_an_undo_that_aborts_it_goes_back_to_what_serves(admin: Admin) -> None:
    reply = await admin.client.post(f"{URL}/rollback", params=ABORT)
    assert reply.status_code == 200, reply.text
    assert (mini(admin).spec.template.model, mini(admin).revision.number) == ("a", 3)
    assert careful(admin).state == "aborted"


async def test_aborted_by_its_own_verb_it_fails_and_is_gone_back_from(admin: Admin) -> None:
    reply = await admin.client.post("/admin/v1/canaries/careful/abort")
    assert reply.status_code == 200, reply.text
    _, bad, back = mini(admin).revisions
    assert (bad.state, back.undoes) == ("failed", 2)
    assert bad.cause == "canary careful aborted: aborted by admin"


async def test_a_canary_of_something_else_cannot_be_named(admin: Admin) -> None:
    await admin.client.post("/admin/v1/canaries/careful/abort")
    await admin.client.put("/admin/v1/deployments/other", json={**of("a"), "update": {}})
    wrong = {"update": {"canary": "careful"}}
    reply = await admin.client.patch("/admin/v1/deployments/other/settings", json=wrong)
    assert_problem(reply, 422, "update.canary is 'careful': that canary is of mini")
