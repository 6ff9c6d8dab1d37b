"""Revisions over the admin API: what was, who made it so and why, and the way back."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.state.tenancy.tokens import Role
from tests.control.admin.app_harness import Admin, assert_problem, running_admin
from tests.fakes.control_values import MINI, in_service

URL = "/admin/v1/deployments/mini"
FIRST = {"engine": "simulated", "model": "m", "engine_args": {"ttft_ms": "1"}}
SECOND = FIRST | {"engine_args": {"ttft_ms": "2"}}


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    """A deployment whose first revision served, and which has a second."""
    async with running_admin() as running:
        why = {"x-penstock-reason": "a start"}
        made = await running.client.post(
            "/admin/v1/deployments", json=FIRST | {"name": "mini"}, headers=why
        )
        assert made.status_code == 201, made.text
        view = running.cluster.view()
        running.cluster.replace(view.with_deployment(in_service(view.deployments[MINI])))
        await running.client.put(URL, json=SECOND, headers={"x-penstock-reason": "faster"})
        yield running


async def test_revisions_are_listed_newest_first_with_who_and_why(admin: Admin) -> None:
    second, first = (await admin.client.get(f"{URL}/revisions")).json()
    assert [(r["number"], r["state"], r["current"]) for r in (first, second)] == [
        (1, "served", False),
        (2, "rolling out", True),
    ]
    assert (first["by"], first["reason"], second["reason"]) == ("admin", "a start", "faster")
    assert first["spec"]["engine_args"] == {"ttft_ms": "1"}
    assert (await admin.client.get(f"{URL}/revisions/1")).json() == first
    assert_problem(await admin.client.get(f"{URL}/revisions/9"), 404, "there are")


async def test_a_rollback_without_a_number_goes_to_the_last_that_served(admin: Admin) -> None:
    replicas = {"replicas": 3}
    await admin.client.post(f"{URL}/scale", json=replicas)
    reply = await admin.client.post(f"{URL}/rollback")
    assert reply.status_code == 200, reply.text
    told = reply.json()
    assert told["spec"]["engine_args"] == {"ttft_ms": "1"}
    assert told["spec"]["replicas"] == 3
    assert told["status"]["rollout"]["revision"] == 3
    newest, *_ = (await admin.client.get(f"{URL}/revisions")).json()
    assert newest["reason"] == "back to revision 1"


async def test_a_rollback_to_a_number_goes_there(admin: Admin) -> None:
    await admin.client.post(f"{URL}/rollback", json={"revision": 1})
    reply = await admin.client.post(
        f"{URL}/rollback", json={"revision": 2}, headers={"x-penstock-reason": "it was right"}
    )
    assert reply.json()["spec"]["engine_args"] == {"ttft_ms": "2"}
    newest, *_ = (await admin.client.get(f"{URL}/revisions")).json()
    assert (newest["number"], newest["reason"]) == (4, "it was right")
    gone = await admin.client.post(f"{URL}/rollback", json={"revision": 3})
    assert_problem(gone, 404, "there are")


async def test_a_restart_is_a_revision_of_the_same_digest(admin: Admin) -> None:
    before = (await admin.client.get(URL)).json()
    told = (await admin.client.post(f"{URL}/restart")).json()
    assert told["template_digest"] == before["template_digest"]
    assert told["generation"] == before["generation"] + 1
    assert told["status"]["rollout"]["revision"] == 3


async def test_streams_are_handed_over_at_once_until_the_next_change(admin: Admin) -> None:
    async def after(verb: str, params: dict[str, str], **body: object) -> bool:
        reply = await admin.client.post(f"{URL}/{verb}", params=params, **body)  # type: ignore[arg-type]
        hurries: bool = reply.json()["hand_over"]
        return hurries

    at_once = {"hand_over": "true"}
    assert await after("restart", at_once)
    assert not await after("restart", {})
    assert await after("scale", at_once, json={"replicas": 3})
    assert await after("scale", {}, json={"replicas": 3}), "which changes nothing"
    assert not await after("scale", {}, json={"replicas": 2})
    assert await after("scale", at_once, json={"replicas": 2}), "which hurries what goes on"
    assert not await after("restart", {})
    assert await after("rollback", at_once, json={"revision": 1})
    await admin.client.post(f"{URL}/pause")
    assert await after("resume", at_once)
    spec = (await admin.client.get(URL)).json()["spec"]
    put = await admin.client.put(URL, json=spec, params=at_once)
    assert put.json()["hand_over"]
    settings = await admin.client.patch(f"{URL}/settings", json={}, params=at_once)
    assert_problem(settings, 422, "hand_over")


async def test_a_rollout_is_paused_and_goes_on(admin: Admin) -> None:
    told = (await admin.client.post(f"{URL}/pause")).json()
    assert told["status"]["rollout"]["paused"]
    again = (await admin.client.post(f"{URL}/pause")).json()
    assert again["generation"] == told["generation"]
    gone_on = (await admin.client.post(f"{URL}/resume")).json()
    assert not gone_on["status"]["rollout"]["paused"]
    assert gone_on["generation"] == told["generation"] + 1


async def test_what_is_tried_changes_nothing(admin: Admin) -> None:
    before = (await admin.client.get(f"{URL}/revisions")).json()
    for verb in ("rollback", "restart"):
        told = await admin.client.post(f"{URL}/{verb}", params={"dry_run": "true"})
        assert told.json()["status"]["rollout"]["revision"] == 3
    assert (await admin.client.get(f"{URL}/revisions")).json() == before


async def test_an_undo_of_what_somebody_changed_meanwhile_is_refused(admin: Admin) -> None:
    for verb in ("rollback", "restart", "pause", "resume"):
        stale = await admin.client.post(f"{URL}/{verb}", headers={"if-match": "1"})
        assert_problem(stale, 412, "read it again")


async def test_where_nothing_served_there_is_nothing_to_undo(admin: Admin) -> None:
    await admin.client.post("/admin/v1/deployments", json=FIRST | {"name": "other"})
    reply = await admin.client.post("/admin/v1/deployments/other/rollback")
    assert_problem(reply, 409, "no earlier revision served")


async def test_a_viewer_may_look_and_not_undo(admin: Admin) -> None:
    viewer = await admin.headers(Role.VIEWER)
    assert (await admin.client.get(f"{URL}/revisions", headers=viewer)).status_code == 200
    for verb in ("rollback", "restart", "pause", "resume"):
        reply = await admin.client.post(f"{URL}/{verb}", headers=viewer)
        assert_problem(reply, 403, "role viewer")


async def test_a_reason_stands_in_the_audit_trail_and_has_an_end(admin: Admin) -> None:
    entries = (await admin.client.get("/admin/v1/audit")).json()
    assert "put deployment mini: faster" in {entry["what"] for entry in entries["entries"]}
    long = {"x-penstock-reason": "x" * 501}
    assert_problem(
        await admin.client.post(f"{URL}/restart", headers=long), 422, "x-penstock-reason"
    )


async def test_changes_of_settings_are_kept_and_undone_on_their_own(admin: Admin) -> None:
    why = {"x-penstock-reason": "a crowd"}
    before = (await admin.client.get(URL)).json()["spec"]
    for change in ({"max_queued": 7}, {"max_queued": 9, "update": {"max_surge": 2}}):
        await admin.client.patch(f"{URL}/settings", json=change, headers=why)
    await admin.client.post(f"{URL}/scale", json={"replicas": 3})
    second, first = (await admin.client.get(f"{URL}/settings")).json()
    assert (first["number"], first["before"], first["after"]) == (
        1,
        {"max_queued": 100},
        {"max_queued": 7},
    )
    assert second["before"] == {"max_queued": 7, "update.max_surge": 1}
    assert (second["by"], second["reason"]) == ("admin", "a crowd")
    back = (await admin.client.post(f"{URL}/rollback", json={"settings": -1})).json()
    assert (back["spec"]["max_queued"], back["spec"]["update"]["max_surge"]) == (7, 1)
    assert back["status"]["rollout"]["revision"] == 2, "no replica is made anew"
    again = (await admin.client.post(f"{URL}/rollback", json={"settings": 2})).json()
    assert (again["spec"]["max_queued"], again["spec"]["update"]["max_surge"]) == (9, 2)
    first = (await admin.client.post(f"{URL}/rollback", json={"settings": 0})).json()
    assert first["spec"] == {**before, "replicas": 3}
    assert [it["number"] for it in (await admin.client.get(f"{URL}/settings")).json()] == [
        *(5, 4, 3, 2, 1)
    ]


async def test_settings_that_nobody_keeps_are_not_gone_back_to(admin: Admin) -> None:
    url = f"{URL}/rollback"
    assert_problem(await admin.client.post(url, json={"settings": -1}), 409, "nothing to go back")
    for number in range(12):
        await admin.client.patch(f"{URL}/settings", json={"max_queued": number})
    assert len((await admin.client.get(f"{URL}/settings")).json()) == 10
    assert_problem(await admin.client.post(url, json={"settings": 1}), 404, "there are 2 to 12")
    assert_problem(await admin.client.post(url, json={"settings": 13}), 404, "there are 2 to 12")
    both = {"settings": 3, "revision": 1}
    assert_problem(await admin.client.post(url, json=both), 422, "leave one out")


async def test_a_restarted_head_keeps_the_changes_of_settings(admin: Admin) -> None:
    await admin.client.patch(
        f"{URL}/settings", json={"canary": [{"deployment": "b", "permille": 5}]}
    )
    kept = admin.cluster.view().deployment("mini").settings_past
    assert len(kept) == 1
    restored = ClusterStore(admin.store, admin.clock)
    await restored.restore()
    assert restored.view().deployment("mini").settings_past == kept
