"""Adapter versions over the admin API: what they are called, and that this never changes."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock.adapters.version import CONFIG_FILE, WEIGHTS_FILE
from penstock.control.managers.adapters.library import GRACE
from penstock.control.state.fleet.replica import FailedAdapter, ReplicaState
from penstock.control.state.tenancy.tokens import Role
from penstock.control.store.store import Author, Change, Key
from tests.control.admin.app_harness import Admin, assert_problem, running_admin
from tests.fakes.control_values import replica

SHIPPED = Path("replica/penstock/replica/default_model/weights/adapters").resolve()
URL = "/admin/v1/adapters"
ALIASES = "/admin/v1/aliases"
PIRATE = {"name": "pirate", "version": "1", "base": "mini", "source": str(SHIPPED / "pirate")}
JSON = {**PIRATE, "name": "json", "source": str(SHIPPED / "json")}


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        spec = {"engine": "simulated", "model": "penstock-mini", "max_adapters": 2}
        await admin.client.put("/admin/v1/deployments/mini", json=spec)
        yield admin


async def registered(admin: Admin, **fields: Any) -> dict[str, Any]:
    reply = await admin.client.post(URL, json={**PIRATE, **fields})
    assert reply.status_code == 201, reply.text
    made: dict[str, Any] = reply.json()
    return made


async def told_by_replicas(
    admin: Admin,
    name: str,
    *,
    adapters: tuple[str, ...] = (),
    digest: str = "",
    failed: tuple[FailedAdapter, ...] = (),
    state: ReplicaState = ReplicaState.READY,
) -> None:
    """A replica of mini tells what it holds, all of one content."""
    deployment = admin.cluster.view().deployment("mini")
    found = replica(name, uid=deployment.uid, digest=deployment.template_digest)
    status = replace(
        found.status,
        adapters=adapters,
        adapter_digests=tuple(digest for _ in adapters),
        failed_adapters=failed,
        adapter_slots=2,
    )
    told = replace(found, status=status, state=state)
    await admin.cluster.observe(lambda view: view.with_replica(told), "a replica told")


async def evidence(admin: Admin, made: dict[str, Any], **fields: Any) -> httpx.Response:
    body = {
        "kind": "adapter-regression",
        "passed": True,
        "at": "2026-01-01T00:00:00Z",
        "digest": made["digest"],
        "family": made["family"],
        **fields,
    }
    # Escaped, as a client may say text that UTF-8 cannot.
    return await admin.client.put(
        f"{URL}/{made['adapter']}/evidence",
        content=json.dumps(body),
        headers={"content-type": "application/json"},
    )


async def test_a_registered_version_is_shown_with_all_that_is_known_of_it(admin: Admin) -> None:
    made = await registered(admin, version=1, labels={"run": "7"})
    assert (made["adapter"], made["state"], made["family"]) == (
        "pirate@1",
        "candidate",
        "penstock-mini",
    )
    assert (made["rank"], made["labels"], made["source"]) == (8, {"run": "7"}, PIRATE["source"])
    assert made["bytes"] == sum(p.stat().st_size for p in (SHIPPED / "pirate").iterdir())
    assert made["registered_by"] == "admin"
    assert (await admin.client.get(f"{URL}/pirate@1")).json() == made
    assert (await admin.client.get(URL)).json() == [made]
    assert (await admin.client.get(URL, params={"name": "json"})).json() == []
    assert admin.contents.stored() == {made["digest"]}


async def test_the_same_bytes_again_are_nothing_new(admin: Admin) -> None:
    made = await registered(admin)
    again = await admin.client.post(URL, json={**PIRATE, "labels": {"other": "x"}})
    assert (again.status_code, again.json()) == (200, made)


async def test_the_same_bytes_under_another_name_share_what_is_stored(admin: Admin) -> None:
    one, other = await registered(admin), await registered(admin, name="corsair")
    assert one["digest"] == other["digest"]
    assert admin.contents.stored() == {one["digest"]}
    await admin.client.delete(f"{URL}/pirate@1")
    admin.clock.advance(GRACE)
    await admin.library.collect()
    assert admin.contents.stored() == {one["digest"]}


async def test_content_of_a_removed_version_stays_for_those_who_were_admitted_before(
    admin: Admin,
) -> None:
    made = await registered(admin)
    await admin.client.delete(f"{URL}/pirate@1")
    await admin.library.collect()
    assert admin.contents.stored() == {made["digest"]}
    admin.clock.advance(GRACE)
    await admin.library.collect()
    assert admin.contents.stored() == frozenset()


async def test_a_head_that_holds_still_throws_no_content_away(admin: Admin) -> None:
    made = await registered(admin)
    await admin.cluster.observe(lambda view: replace(view, held="another is newer"), "test")
    refused = await admin.client.post(URL, json={**PIRATE, "version": "2"})
    assert_problem(refused, 503)
    assert admin.contents.stored() == {made["digest"]}


async def test_what_cannot_be_read_keeps_its_name_and_its_bytes(admin: Admin) -> None:
    made = await registered(admin)
    key = Key("adapter", "pirate@1")
    document = (await admin.store.load()).documents[key].document
    newer = Change(key, {**document, "state": "of a newer head"})
    await admin.store.apply([newer], Author("a newer head", "test"), admin.clock.now())
    await admin.cluster.restore()
    await admin.library.collect()
    assert admin.contents.stored() == {made["digest"]}
    reply = await admin.client.post(URL, json={**PIRATE, "source": JSON["source"]})
    assert_problem(reply, 409, "cannot read it")
    await registered(admin, version="2")
    assert_problem(await admin.client.delete(f"{URL}/pirate@2"), 409, "cannot be read")


async def test_other_bytes_under_a_taken_version_are_a_conflict_and_not_kept(admin: Admin) -> None:
    made = await registered(admin)
    reply = await admin.client.post(URL, json={**PIRATE, "source": JSON["source"]})
    assert_problem(reply, 409, "pirate@1 is taken by other bytes")
    assert admin.contents.stored() == {made["digest"]}


async def test_a_removed_version_is_never_given_again(admin: Admin) -> None:
    await registered(admin)
    assert (await admin.client.delete(f"{URL}/pirate@1")).status_code == 204
    assert_problem(await admin.client.get(f"{URL}/pirate@1"), 404, "no adapter pirate@1")
    assert_problem(await admin.client.post(URL, json=PIRATE), 409, "was removed")
    await registered(admin, version="2")


async def test_content_stays_while_a_replica_holds_it(admin: Admin) -> None:
    made = await registered(admin)
    await told_by_replicas(admin, "mini-1", adapters=("pirate@1",), digest=made["digest"])
    await admin.client.delete(f"{URL}/pirate@1")
    admin.clock.advance(GRACE)
    await admin.library.collect()
    assert admin.contents.stored() == {made["digest"]}


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"base": "other"}, 422, ["base is 'other'", "mini, penstock-mini"]),
        ({"name": "a b"}, 422, ["a b@1", "name@version"]),
        ({"version": ""}, 422, ["pirate@"]),
        ({"version": 1.5}, 422, ["version"]),
        ({"source": "/nowhere"}, 422, ["/nowhere"]),
        ({"source": "nothing/known"}, 422, ["nothing/known"]),
        ({"labels": {"a b": "c"}}, 422, ["label"]),
        ({"colour": "red"}, 422, ["colour"]),
    ],
)
async def test_what_cannot_be_is_refused_with_its_reason_and_nothing_kept(
    admin: Admin, fields: dict[str, Any], status: int, words: list[str]
) -> None:
    reply = await admin.client.post(URL, json={**PIRATE, **fields})
    assert_problem(reply, status, *words)
    assert (await admin.client.get(URL)).json() == []
    assert admin.contents.stored() == frozenset()


async def test_a_rank_that_no_deployment_takes_is_refused(admin: Admin) -> None:
    spec = {"engine": "simulated", "model": "penstock-mini", "max_adapter_rank": 4}
    await admin.client.put("/admin/v1/deployments/mini", json=spec)
    assert_problem(await admin.client.post(URL, json=PIRATE), 422, "rank is 8", "max_adapter_rank")


async def test_a_broken_body_is_refused(admin: Admin) -> None:
    headers = {"content-type": "application/json"}
    assert (await admin.client.post(URL, content=b"{", headers=headers)).status_code in (400, 422)


def multipart(manifest: dict[str, Any], directory: Path) -> dict[str, Any]:
    files: dict[str, Any] = {"manifest": (None, json.dumps(manifest), "application/json")}
    for name in (CONFIG_FILE, WEIGHTS_FILE):
        files[name] = (name, (directory / name).read_bytes(), "application/octet-stream")
    return files


async def test_files_that_are_sent_along_are_registered(admin: Admin) -> None:
    manifest = {"name": "pirate", "version": 3, "base": "mini", "labels": {"by": "upload"}}
    reply = await admin.client.post(URL, files=multipart(manifest, SHIPPED / "pirate"))
    assert reply.status_code == 201, reply.text
    assert (reply.json()["adapter"], reply.json()["source"]) == ("pirate@3", "upload")
    assert reply.json()["digest"] == (await registered(admin))["digest"]


async def test_an_upload_whose_manifest_is_wrong_leaves_nothing(admin: Admin) -> None:
    files = multipart({"name": "pirate", "base": "mini"}, SHIPPED / "pirate")
    assert_problem(await admin.client.post(URL, files=files), 422, "version")
    assert admin.contents.stored() == frozenset()


async def test_an_upload_whose_files_fit_nothing_leaves_nothing(
    admin: Admin, tmp_path: Path
) -> None:
    broken = Path(shutil.copytree(SHIPPED / "pirate", tmp_path / "broken"))
    (broken / WEIGHTS_FILE).write_bytes(b"no tensors")
    files = multipart({"name": "pirate", "version": 1, "base": "mini"}, broken)
    assert_problem(await admin.client.post(URL, files=files), 422, WEIGHTS_FILE)
    assert admin.contents.stored() == frozenset()


async def test_a_viewer_sees_and_changes_nothing(admin: Admin) -> None:
    viewer = await admin.headers(Role.VIEWER)
    assert (await admin.client.get(URL, headers=viewer)).status_code == 200
    assert_problem(await admin.client.post(URL, json=PIRATE, headers=viewer), 403)
    files = multipart({"name": "pirate", "version": 1, "base": "mini"}, SHIPPED / "pirate")
    assert_problem(await admin.client.post(URL, files=files, headers=viewer), 403)


async def test_a_version_goes_forward_and_never_back(admin: Admin) -> None:
    await registered(admin)
    for to in ("canary", "live"):
        reply = await admin.client.post(f"{URL}/pirate@1/promote", json={"to": to})
        assert reply.json()["state"] == to
    back = await admin.client.post(f"{URL}/pirate@1/promote", json={"to": "canary"})
    assert_problem(back, 409, "pirate@1 is live and cannot become canary")
    assert (await admin.client.post(f"{URL}/pirate@1/retire")).json()["state"] == "retired"
    assert_problem(await admin.client.post(f"{URL}/none@1/promote", json={"to": "live"}), 404)


async def test_a_promotion_takes_evidence_where_the_policy_says_so(admin: Admin) -> None:
    made = await registered(admin)
    policy = {"evidence_for": ["live"], "not_older_than_hours": 48}
    assert (await admin.client.put("/admin/v1/adapter-policy", json=policy)).json() == {
        "kind": "adapter-regression",
        **policy,
    }
    promote = {"to": "live"}
    reply = await admin.client.post(f"{URL}/pirate@1/promote", json=promote)
    assert_problem(reply, 409, "it has no evidence of kind adapter-regression")
    at = admin.clock.now().isoformat()
    await evidence(admin, made, passed=False, at=at)
    reply = await admin.client.post(f"{URL}/pirate@1/promote", json=promote)
    assert_problem(reply, 409, "failed")
    admin.clock.advance(timedelta(seconds=1))
    await evidence(admin, made, at=admin.clock.now().isoformat(), against="pirate@0")
    assert (await admin.client.post(f"{URL}/pirate@1/promote", json=promote)).status_code == 200


async def test_evidence_is_kept_with_its_report(admin: Admin) -> None:
    made = await registered(admin)
    told = (await evidence(admin, made, report={"wins": 7}, dataset="d" * 64)).json()
    (listed,) = (await admin.client.get(f"{URL}/pirate@1/evidence")).json()
    assert listed == told
    assert (listed["has_report"], listed["report"], listed["passed"]) == (True, None, True)
    one = await admin.client.get(f"{URL}/pirate@1/evidence/{told['id']}")
    assert one.json()["report"] == {"wins": 7}
    assert_problem(await admin.client.get(f"{URL}/pirate@1/evidence/ev_x"), 404)


@pytest.mark.parametrize("report", [{"said": "\ud800"}, {"said": [{"\udc00": 1}]}])
async def test_a_report_that_nobody_could_be_shown_is_refused(
    admin: Admin, report: dict[str, Any]
) -> None:
    made = await registered(admin)
    assert_problem(await evidence(admin, made, report=report), 422, "report", "UTF-8")
    assert (await admin.client.get(f"{URL}/pirate@1/evidence")).json() == []


async def test_a_report_is_shown_as_it_was_told(admin: Admin) -> None:
    made = await registered(admin)
    report = {"said": "\U0001f3f4 \0"}
    told = (await evidence(admin, made, report=report)).json()
    one = await admin.client.get(f"{URL}/pirate@1/evidence/{told['id']}")
    assert one.json()["report"] == report


async def test_evidence_of_other_bytes_or_models_is_refused(admin: Admin) -> None:
    made = await registered(admin)
    assert_problem(await evidence(admin, made, digest="f" * 64), 409, "other bytes")
    assert_problem(await evidence(admin, made, family="llama"), 409, "llama")
    assert_problem(await evidence(admin, made, against="pirate"), 422, "against")
    assert_problem(await evidence(admin, made, at="2026-01-01T00:00:00"), 422, "at")


async def test_where_tells_what_each_replica_says(admin: Admin) -> None:
    made = await registered(admin)
    assert (await admin.client.get(f"{URL}/pirate@1/replicas")).json() == []
    await admin.client.put(f"{ALIASES}/mini/pirate", json={"target": "pirate@1", "pinned": True})
    await told_by_replicas(admin, "mini-1", adapters=("pirate@1",), digest=made["digest"])
    failure = FailedAdapter("pirate@1", made["digest"], "the disk is full")
    await told_by_replicas(admin, "mini-2", failed=(failure,))
    await told_by_replicas(admin, "mini-3")
    await told_by_replicas(admin, "mini-4", adapters=("pirate@1",), state=ReplicaState.LOST)
    found = (await admin.client.get(f"{URL}/pirate@1/replicas")).json()
    told = [(each["replica"], each["state"], each["kept"], each["reason"]) for each in found]
    assert told == [
        ("mini-1", "loaded", True, ""),
        ("mini-2", "failed", True, "the disk is full"),
        ("mini-3", "wanted", True, ""),
    ]
    assert found[0]["pinned"]


async def test_a_deployment_that_names_adapters_as_it_once_did_is_told_where_they_are(
    admin: Admin,
) -> None:
    spec = {"engine": "simulated", "model": "penstock-mini", "adapters": []}
    reply = await admin.client.put("/admin/v1/deployments/mini", json=spec)
    assert_problem(reply, 422, "/admin/v1/adapters", "/admin/v1/aliases")


async def test_all_of_it_survives_a_restart_of_the_head(admin: Admin) -> None:
    made = await registered(admin)
    await evidence(admin, made)
    await admin.client.put(f"{ALIASES}/mini/pirate", json={"target": "pirate@1", "preload": 0})
    await registered(admin, version="2")
    await admin.client.delete(f"{URL}/pirate@2")
    await admin.client.put("/admin/v1/adapter-policy", json={"evidence_for": ["live"]})
    before = admin.cluster.view().adapters
    await admin.cluster.restore()
    assert admin.cluster.view().adapters == before
    assert_problem(await admin.client.post(URL, json={**PIRATE, "version": "2"}), 409, "removed")
