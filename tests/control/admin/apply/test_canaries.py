"""Documents of kind canary, and what others may not move meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.control.admin.app_harness import Admin, running_admin
from tests.control.admin.apply.test_apply import MINI, actions, applied, assert_faults, plan_of

NEXT = {**MINI, "name": "next", "model": "n"}
CANARY = {
    **{"penstock": "v1", "kind": "canary", "name": "try", "target": "mini", "candidate": "next"},
    "guards": {"errors": {"ratio": 2}},
}
PLAN = {"penstock": "v1", "kind": "canary", "name": "careful", "target": "mini"}
CHANGED = {**MINI, "model": "other"}


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as running:
        yield running


async def state(admin: Admin, name: str = "try") -> str:
    return str((await admin.client.get(f"/admin/v1/canaries/{name}")).json()["state"])


async def test_a_canary_starts_with_its_deployments_and_twice_is_the_same(admin: Admin) -> None:
    assert actions(await plan_of(admin, CANARY, NEXT, MINI))["canary/try"] == "create"
    assert await state(admin) == "running"
    shown = (await admin.client.get("/admin/v1/canaries/try")).json()
    assert shown["guards"]["errors"] == {"ratio": 2, "margin": 0.01}
    again = await plan_of(admin, CANARY, NEXT, MINI)
    assert (again["same"], len(again["steps"])) == (3, 3)


async def test_one_that_has_ended_is_not_started_once_more(admin: Admin) -> None:
    await plan_of(admin, MINI, NEXT, CANARY)
    await admin.client.post("/admin/v1/canaries/try/abort")
    assert actions(await plan_of(admin, MINI, NEXT, CANARY))["canary/try"] == "same"
    assert await state(admin) == "aborted"
    other = {**CANARY, "steps": [{"permille": 500}]}
    assert actions(await plan_of(admin, MINI, NEXT, other))["canary/try"] == "change"
    assert await state(admin) == "running"


async def test_one_that_goes_on_is_changed_once_it_is_aborted(admin: Admin) -> None:
    await plan_of(admin, MINI, NEXT, CANARY)
    other = {**CANARY, "guards": {"errors": {"ratio": 3}}}
    assert_faults(await applied(admin, other), (0, [], "'try' is running: abort it first"))
    plan = await plan_of(admin, other, abort_canary=True)
    (change,) = plan["steps"][0]["fields"]
    assert change["field"] == "guards.errors"
    assert change["after"] == {"ratio": 3, "margin": 0.01}
    assert await state(admin) == "running"


async def test_a_plan_for_revisions_is_changed_as_it_waits(admin: Admin) -> None:
    await plan_of(admin, MINI, PLAN)
    assert await state(admin, "careful") == "waiting"
    await plan_of(admin, {**PLAN, "steps": [{"permille": 300}]})
    assert await state(admin, "careful") == "waiting"


async def test_a_document_that_moves_an_arm_is_refused_unless_the_canary_is_aborted(
    admin: Admin,
) -> None:
    await plan_of(admin, MINI, NEXT, CANARY)
    tenant = {"penstock": "v1", "kind": "tenant", "id": "acme"}
    assert_faults(await applied(admin, tenant, CHANGED), (1, [], "canary try's, which is running"))
    assert not admin.cluster.view().tenancy.tenants
    plan = await plan_of(admin, CHANGED, abort_canary=True)
    assert actions(plan) == {"deployment/mini": "change"}
    assert await state(admin) == "aborted"


async def test_pruning_what_a_canary_has_is_refused_and_the_canary_with_it_is_not(
    admin: Admin,
) -> None:
    await plan_of(admin, MINI, NEXT, CANARY)
    reply = await applied(admin, MINI, CANARY, prune=True)
    assert_faults(reply, (-1, [], "deployment next is canary try's"))
    plan = await plan_of(admin, MINI, prune=True)
    assert actions(plan) == {
        "deployment/mini": "same",
        "canary/try": "delete",
        "deployment/next": "delete",
    }


async def test_what_goes_on_or_waits_is_written_out_and_what_has_ended_is_not(
    admin: Admin,
) -> None:
    await plan_of(admin, MINI, NEXT, CANARY, PLAN)
    found = (await admin.client.get("/admin/v1/export")).json()["documents"]
    assert [each for each in found if each["kind"] == "canary"] == [
        PLAN,
        {**CANARY, "guards": {"errors": {"ratio": 2.0, "margin": 0.01}}},
    ]
    assert (await plan_of(admin, *found))["same"] == len(found)
    await admin.client.post("/admin/v1/canaries/try/abort")
    found = (await admin.client.get("/admin/v1/export")).json()["documents"]
    assert [each["name"] for each in found if each["kind"] == "canary"] == ["careful"]


async def test_faults_of_guards_have_their_place(admin: Admin) -> None:
    wrong = {**CANARY, "guards": {"errors": {"ratio": 0.5}, "tttf": {"margin": 0.1}}}
    reply = await applied(admin, MINI, NEXT, wrong)
    assert reply.status_code == 422
    found = {tuple(each["path"]) for each in reply.json()["faults"]}
    assert ("guards", "errors", "ratio") in found
