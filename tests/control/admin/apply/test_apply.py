"""Documents applied all at once, over the admin API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from penstock.control.state.rollout.deployment import DeploymentName, after_failure
from penstock.control.state.rollout.promoting import with_template_of
from penstock.control.state.rollout.revision import Cause, Origin
from penstock.control.state.tenancy.tokens import Role
from tests.control.admin.app_harness import Admin, assert_problem, running_admin
from tests.fakes.control_values import NOON, in_service

URL = "/admin/v1/apply"
MINI = {"penstock": "v1", "kind": "deployment", "name": "mini", "engine": "simulated", "model": "m"}
ACME = {"penstock": "v1", "kind": "tenant", "id": "acme", "max_streams": 5}
SHADOW = {
    **{"penstock": "v1", "kind": "shadow", "name": "aa", "primary": "mini", "candidate": "mini"},
    "share_permille": 100,
}
ACCESS = {"penstock": "v1", "kind": "access", "anonymous": "refused"}


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    """An app that has just been made."""
    async with running_admin() as running:
        yield running


async def applied(admin: Admin, *documents: dict[str, Any], **how: Any) -> httpx.Response:
    """What is answered to these documents."""
    params = {name: str(value).lower() for name, value in how.items()}
    return await admin.client.post(URL, json={"documents": documents}, params=params)


async def plan_of(admin: Admin, *documents: dict[str, Any], **how: Any) -> dict[str, Any]:
    """The plan of documents that are taken."""
    reply = await applied(admin, *documents, **how)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def actions(plan: dict[str, Any]) -> dict[str, str]:
    """What becomes of each object."""
    return {f"{step['kind']}/{step['name']}": step["action"] for step in plan["steps"]}


async def test_documents_of_several_kinds_are_made_in_one_transaction_and_twice_change_nothing(
    admin: Admin,
) -> None:
    await admin.client.get("/admin/v1/export")  # whose token is noted as used
    before = (await admin.store.load()).version
    documents = (SHADOW, ACCESS, ACME, MINI)  # in any order
    plan = await plan_of(admin, *documents)
    assert actions(plan) == {
        "shadow/aa": "create",
        "access/access": "change",
        "tenant/acme": "create",
        "deployment/mini": "create",
    }
    after = (await admin.store.load()).version
    assert after == before + 1
    again = await plan_of(admin, *documents)
    assert (again["same"], len(again["steps"])) == (4, 4)
    assert (await admin.store.load()).version == after


async def test_a_dry_run_tells_the_plan_and_changes_nothing(admin: Admin) -> None:
    await admin.client.get("/admin/v1/export")
    before = await admin.store.load()
    plan = await plan_of(admin, MINI, ACME, dry_run=True)
    assert (plan["applied"], plan["created"]) == (False, 2)
    assert {"field": "max_streams", "before": None, "after": 5} in plan["steps"][1]["fields"]
    assert await admin.store.load() == before
    assert not admin.cluster.view().deployments


async def test_one_bad_document_leaves_all_undone_and_each_fault_has_its_place(
    admin: Admin,
) -> None:
    wrong: list[dict[str, Any]] = [
        {**MINI, "name": "a", "max_queud": 3},
        {**MINI, "name": "b", "update": {"max_surgee": 2}},
        {**MINI, "name": "c", "update": {"max_surge": 0}},
        {**MINI, "kind": "deploymnt"},
        {**MINI, "penstock": "v9"},
        MINI,
        {**MINI, "name": "mini"},
        {"penstock": "v1", "kind": "adapter", "name": "a b", "version": 1, "base": "m"},
    ]
    reply = await applied(admin, *wrong)
    assert_faults(
        reply,
        (0, ["max_queud"], "near to it: max_queued"),
        (3, ["kind"], "near to it: deployment"),
        (4, ["penstock"], "penstock: v1"),
        (6, [], "is in document 6, too"),
        (7, ["name"], "a b"),
    )
    reply = await applied(admin, *wrong[1:3], MINI)
    assert_faults(
        reply,
        (0, ["update", "max_surgee"], "near to it: max_surge"),
        (1, ["update", "max_surge"], "could ever take"),
    )
    assert not admin.cluster.view().deployments


def assert_faults(reply: httpx.Response, *faults: tuple[int, list[str], str]) -> None:
    """The reply refuses exactly these."""
    assert reply.status_code in (403, 409, 422), reply.text
    found = reply.json()["faults"]
    told = [(each["document"], each["path"]) for each in found]
    assert told == [(document, path) for document, path, _ in faults], found
    for each, (_, _, words) in zip(found, faults, strict=True):
        assert words in each["text"]


async def test_what_others_stand_in_the_way_of_is_refused_with_the_document(admin: Admin) -> None:
    await plan_of(admin, MINI)
    alias = {"penstock": "v1", "kind": "alias", "deployment": "mini", "alias": "x"}
    reply = await applied(admin, {**MINI, "replicas": 3}, {**alias, "target": "pirate@1"})
    assert_faults(reply, (1, [], "pirate@1 is not registered"))
    assert admin.cluster.view().deployments[DeploymentName("mini")].spec.replicas == 1
    a, b = ({**MINI, "name": n, "degrade": [f"fallback:{m}"]} for n, m in ("ab", "ba"))
    reply = await applied(admin, a, b)
    assert_faults(reply, (0, ["degrade"], "circle"), (1, ["degrade"], "circle"))


async def test_a_field_that_is_not_said_stays_and_one_that_is_said_no_longer_takes_its_default(
    admin: Admin,
) -> None:
    first = {"max_queued": 7, "labels": {"team": "search", "tier": "a"}, "degrade": ["trim"]}
    await plan_of(admin, {**MINI, **first})
    await admin.client.patch("/admin/v1/deployments/mini/settings", json={"max_n": 2})
    plan = await plan_of(admin, {**MINI, "labels": {"team": "search"}})
    assert plan["steps"][0]["fields"] == [
        {"field": "max_queued", "before": 7, "after": 100},
        {"field": "degrade", "before": ["trim"], "after": []},
        {"field": "labels.tier", "before": "a", "after": None},
    ]
    spec = (await admin.client.get("/admin/v1/deployments/mini")).json()["spec"]
    assert (spec["max_queued"], spec["max_n"], spec["labels"]) == (100, 2, {"team": "search"})


async def test_what_somebody_else_has_set_since_is_named_and_overwritten_by_force_alone(
    admin: Admin,
) -> None:
    document = {**MINI, "max_queued": 7}
    await plan_of(admin, document)
    await admin.client.patch("/admin/v1/deployments/mini/settings", json={"max_queued": 9})
    (step,) = (await plan_of(admin, document, dry_run=True))["steps"]
    overwritten = {"field": "max_queued", "before": 9, "after": 7, "by": "admin"}
    assert step["overwrites"] == [overwritten]
    reply = await applied(admin, document)
    assert reply.status_code == 409
    assert_faults(reply, (0, ["max_queued"], "admin has set it to 9, here it is 7"))
    assert (await plan_of(admin, document, force=True))["changed"] == 1
    assert (await plan_of(admin, document))["same"] == 1
    # Taken over in the file it is its own again.
    await admin.client.patch("/admin/v1/deployments/mini/settings", json={"max_queued": 9})
    assert (await plan_of(admin, {**document, "max_queued": 9}))["same"] == 1
    assert (await plan_of(admin, {**document, "max_queued": 10}))["changed"] == 1


async def test_a_document_that_a_canarys_promotion_made_stale_is_named_with_it(
    admin: Admin,
) -> None:
    document = {**MINI, "engine_args": {"ttft_ms": "5"}}
    next_one = {**MINI, "name": "next", "engine_args": {"ttft_ms": "7"}}
    await plan_of(admin, document)
    await plan_of(admin, next_one, set_name="next")
    now, why = admin.clock.now(), Origin("canary chat-next", "promotes next")
    view = with_template_of(admin.cluster.view(), "mini", "next", why, now)
    admin.cluster.replace(view)
    (step,) = (await plan_of(admin, document, dry_run=True))["steps"]
    (theirs,) = step["overwrites"]
    assert (theirs["field"], theirs["by"]) == ("engine_args.ttft_ms", "canary chat-next")
    reply = await applied(admin, document)
    assert_faults(reply, (0, ["engine_args", "ttft_ms"], "canary chat-next has set it to '7'"))
    assert (await plan_of(admin, next_one | {"name": "mini"}))["same"] == 1


async def test_what_was_there_before_is_somebody_elses_where_it_is_not_at_its_default(
    admin: Admin,
) -> None:
    body = {"name": "mini", "engine": "simulated", "model": "m", "max_queued": 9}
    await admin.client.post("/admin/v1/deployments", json=body)
    reply = await applied(admin, {**MINI, "max_queued": 7, "max_n": 3})
    assert_faults(reply, (0, ["max_queued"], "somebody else"))
    assert (await plan_of(admin, {**MINI, "max_n": 3}))["changed"] == 1


async def test_pruning_deletes_what_the_set_made_and_nothing_else(admin: Admin) -> None:
    other = {**MINI, "name": "other"}
    await admin.client.put("/admin/v1/tenants/acme", json={})
    await plan_of(admin, MINI, other, ACME, SHADOW, set_name="a", force=True)
    await plan_of(admin, {**MINI, "name": "third"}, set_name="b")
    assert (await plan_of(admin, MINI, set_name="a"))["deleted"] == 0
    plan = await plan_of(admin, MINI, set_name="a", prune=True)
    assert actions(plan) == {
        "deployment/mini": "same",
        "shadow/aa": "delete",
        "deployment/other": "delete",
    }
    view = admin.cluster.view()
    assert set(view.deployments) == {"mini", "third"}
    assert set(view.tenancy.tenants) == {"acme"}  # it was there before
    assert (await plan_of(admin, MINI, set_name="a", prune=True))["deleted"] == 0


async def test_a_namesake_that_somebody_made_since_is_not_pruned(admin: Admin) -> None:
    await plan_of(admin, MINI, ACME)
    await admin.client.delete("/admin/v1/tenants/acme")
    await admin.client.put("/admin/v1/tenants/acme", json={})
    assert (await plan_of(admin, MINI, prune=True))["deleted"] == 0
    assert "acme" in admin.cluster.view().tenancy.tenants


async def test_a_template_that_failed_is_refused_with_its_cause_until_it_changes_or_by_force(
    admin: Admin,
) -> None:
    await plan_of(admin, MINI)
    bad = {**MINI, "engine_args": {"ttft_ms": 5}}
    name = DeploymentName("mini")
    view = admin.cluster.view()
    admin.cluster.replace(view.with_deployment(in_service(view.deployments[name])))
    await plan_of(admin, bad)
    view = admin.cluster.view()
    back = after_failure(view.deployments[name], Cause("mini-1 failed: no such file"), NOON)
    admin.cluster.replace(view.with_deployment(back))
    reply = await applied(admin, bad)
    assert_faults(reply, (0, [], "revision 2 of this template failed: mini-1 failed: no such file"))
    # All else may be changed, and what went back by itself is nobody's to overwrite.
    assert (await plan_of(admin, {**MINI, "max_n": 3}, dry_run=True))["changed"] == 1
    mended = {**MINI, "engine_args": {"ttft_ms": 6}}
    assert (await plan_of(admin, mended, dry_run=True))["steps"][0]["overwrites"] == []
    assert (await plan_of(admin, bad, force=True))["changed"] == 1
    assert admin.cluster.view().deployments[name].spec.template.engine_args == (("ttft_ms", "5"),)


async def test_a_change_tells_what_becomes_of_replicas_and_whether_they_find_room(
    admin: Admin,
) -> None:
    (step,) = (await plan_of(admin, {**MINI, "replicas": 2}))["steps"]
    assert (step["effect"]["starts"], step["effect"]["fits"]) == (2, False)
    assert "no node is ready" in step["effect"]["message"]
    (step,) = (await plan_of(admin, {**MINI, "replicas": 0}))["steps"]
    assert (step["effect"]["stops"], step["effect"]["fits"]) == (2, True)


async def test_an_exported_fleet_applies_to_itself_without_a_change(admin: Admin) -> None:
    said = {"canary": [{"deployment": "next", "permille": 5}], "degrade": ["fallback:next"]}
    body = {"name": "mini", "engine": "simulated", "model": "m", "max_n": 3, **said}
    body |= {"engine_args": {"ttft_ms": 5}, "update": {"max_surge": 3}, "max_adapters": 2}
    await admin.client.post("/admin/v1/deployments", json=body)
    await admin.client.put("/admin/v1/tenants/acme", json={"models": ["mini"], "degrade": "never"})
    shadow = {k: v for k, v in SHADOW.items() if k not in ("penstock", "kind")}
    until = {"until": {"pairs": 3, "at": "2027-01-01T00:00:00Z"}}
    await admin.client.post("/admin/v1/shadows", json=shadow | until)
    before = admin.cluster.view()
    documents = (await admin.client.get("/admin/v1/export")).json()["documents"]
    assert [each["kind"] for each in documents] == ["deployment", "tenant", "shadow"]
    assert documents[0]["update"] == {"max_surge": 3}
    plan = await plan_of(admin, *documents)
    assert plan["same"] == 3, plan
    assert replace(admin.cluster.view(), applied={}) == before


async def test_a_shadow_that_would_begin_anew_does_so_by_force_alone(admin: Admin) -> None:
    await plan_of(admin, MINI, SHADOW)
    changed = {**SHADOW, "share_permille": 200}
    assert_faults(await applied(admin, MINI, changed), (1, [], "what this one has compared"))
    uid = admin.cluster.view().shadows.named["aa"].uid
    await plan_of(admin, MINI, changed, force=True)
    assert admin.cluster.view().shadows.named["aa"].uid != uid


async def test_who_applies_needs_the_roles_of_what_is_in_it(admin: Admin) -> None:
    viewer, operator = [await admin.headers(role) for role in (Role.VIEWER, Role.OPERATOR)]
    body = {"documents": [MINI]}
    assert_problem(await admin.client.post(URL, json=body, headers=viewer), 403, "operator")
    assert (await admin.client.post(URL, json=body, headers=operator)).status_code == 200
    reply = await admin.client.post(URL, json={"documents": [ACCESS]}, headers=operator)
    assert_faults(reply, (0, [], "this needs role admin"))
    assert not admin.cluster.view().tenancy.access.keys_required
    mini = {**MINI, "model": "penstock-mini", "max_adapters": 2}
    for source, words in (("/etc", "this needs role admin"), ("no/such", "no/such")):
        pirate = {"penstock": "v1", "kind": "adapter", "name": "p", "version": 1}
        pirate |= {"base": "mini", "source": source}
        both = {"documents": [mini, pirate]}
        reply = await admin.client.post(URL, json=both, headers=operator, params={"force": "true"})
        assert_faults(reply, (1, [], words))


async def test_another_engine_leaves_the_arguments_of_the_last_one_behind(admin: Admin) -> None:
    await plan_of(admin, {**MINI, "engine_args": {"ttft_ms": 5}})
    canned = {**MINI, "engine": "canned", "engine_args": {"text": "busy"}}
    assert (await plan_of(admin, canned))["changed"] == 1
    args = admin.cluster.view().deployments[DeploymentName("mini")].spec.template.engine_args
    assert args == (("text", "busy"),)


async def test_text_that_nothing_could_say_again_is_refused(admin: Admin) -> None:
    body = b'{"documents": [{"penstock": "v1", "kind": "deployment", "\\ud800": 1}]}'
    headers = {"content-type": "application/json"}
    reply = await admin.client.post(URL, content=body, headers=headers)
    assert_faults(reply, (0, [], "surrogate"))


async def test_a_list_that_differs_in_each_of_many_documents_is_changed(admin: Admin) -> None:
    for ladder in (["trim"], ["reject"]):
        documents = [{**MINI, "name": f"m{n}", "degrade": ladder} for n in range(3)]
        plan = await plan_of(admin, *documents)
        assert plan["created"] + plan["changed"] == 3
