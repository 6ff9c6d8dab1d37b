"""Aliases over the admin API: they move at once, and name nothing that could not answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.control.admin.adapters.test_adapters import ALIASES, URL, registered
from tests.control.admin.app_harness import Admin, assert_problem, running_admin
from tests.fakes.control_values import in_service


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        spec = {"engine": "simulated", "model": "penstock-mini", "max_adapters": 2}
        await admin.client.put("/admin/v1/deployments/mini", json=spec)
        yield admin


async def test_an_alias_is_made_moved_undone_and_remembers(admin: Admin) -> None:
    await registered(admin)
    await registered(admin, version="2")
    url = f"{ALIASES}/mini/pirate"
    made = await admin.client.put(url, json={"target": "pirate@1"})
    assert (made.status_code, made.json()["model"]) == (201, "mini:pirate")
    moved = await admin.client.put(url, json={"target": "pirate@2"})
    assert (moved.status_code, moved.json()["target"]) == (200, "pirate@2")
    split = await admin.client.put(url, json={"split": {"pirate@1": 90, "pirate@2": 10}})
    assert split.json()["split"] == {"pirate@1": 9, "pirate@2": 1}
    assert (await admin.client.post(f"{url}/undo")).json()["target"] == "pirate@2"
    history = (await admin.client.get(f"{url}/history")).json()
    assert [move["target"] for move in history] == ["pirate@2", None, "pirate@2", "pirate@1"]
    assert [move["undoes"] for move in history] == [True, False, False, False]
    listed = (await admin.client.get(ALIASES, params={"deployment": "mini"})).json()
    assert listed == [(await admin.client.get(url)).json()]
    shown = (await admin.client.get(f"{URL}/pirate@2")).json()
    assert shown["aliases"] == ["mini:pirate"]


async def test_a_version_that_an_alias_names_cannot_go(admin: Admin) -> None:
    await registered(admin)
    await admin.client.put(f"{ALIASES}/mini/pirate", json={"target": "pirate@1"})
    assert_problem(await admin.client.delete(f"{URL}/pirate@1"), 409, "mini:pirate names it")
    assert_problem(await admin.client.post(f"{URL}/pirate@1/retire"), 409, "mini:pirate")
    assert (await admin.client.delete(f"{ALIASES}/mini/pirate")).status_code == 204
    assert (await admin.client.delete(f"{URL}/pirate@1")).status_code == 204


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"target": "none@1"}, ["none@1 is not registered"]),
        ({"target": "pirate"}, ["name@version"]),
        ({}, ["either target or split"]),
        ({"target": "pirate@1", "split": {"pirate@1": 1}}, ["either target or split"]),
        ({"split": {"pirate@1": 0, "pirate@2": 0}}, ["gives pirate@1, pirate@2 no share"]),
        ({"split": {"pirate@1": 0}}, ["gives pirate@1 no share"]),
        ({"split": {"pirate@1": -1}}, ["split"]),
        ({"target": "pirate@1", "preload": -1}, ["preload"]),
    ],
)
async def test_an_alias_that_cannot_be_is_refused(
    admin: Admin, body: dict[str, Any], words: list[str]
) -> None:
    await registered(admin)
    reply = await admin.client.put(f"{ALIASES}/mini/pirate", json=body)
    assert_problem(reply, 422, *words)
    assert (await admin.client.get(ALIASES)).json() == []


async def test_a_version_without_a_share_is_left_out_of_a_split(admin: Admin) -> None:
    await registered(admin)
    await registered(admin, version="2")
    split = {"split": {"pirate@1": 100, "pirate@2": 0}}
    made = await admin.client.put(f"{ALIASES}/mini/pirate", json=split)
    assert (made.json()["target"], made.json()["split"]) == ("pirate@1", None)


async def test_an_alias_of_a_deployment_that_takes_no_adapters_is_refused(admin: Admin) -> None:
    await registered(admin)
    spec = {"engine": "simulated", "model": "penstock-mini"}
    await admin.client.put("/admin/v1/deployments/plain", json=spec)
    reply = await admin.client.put(f"{ALIASES}/plain/pirate", json={"target": "pirate@1"})
    assert_problem(reply, 422, "plain takes no adapters: set max_adapters")
    narrow = {**spec, "max_adapter_rank": 4}
    await admin.client.put("/admin/v1/deployments/narrow", json=narrow)
    reply = await admin.client.put(f"{ALIASES}/narrow/pirate", json={"target": "pirate@1"})
    assert_problem(reply, 422, "pirate@1 has rank 8, narrow takes ranks up to 4")


async def test_an_alias_that_a_way_back_could_not_load_waits_for_the_change(admin: Admin) -> None:
    await registered(admin)
    url = "/admin/v1/deployments/plain"
    spec = {"engine": "simulated", "model": "penstock-mini", "replicas": 0}
    await admin.client.put(url, json=spec)
    await admin.cluster.observe(
        lambda view: view.with_deployment(in_service(view.deployment("plain"))), "test"
    )
    await admin.client.put(url, json={**spec, "max_adapters": 2})
    reply = await admin.client.put(f"{ALIASES}/plain/pirate", json={"target": "pirate@1"})
    assert_problem(reply, 422, "may go back to revision 1, which takes no adapters")
    await admin.cluster.observe(
        lambda view: view.with_deployment(in_service(view.deployment("plain"))), "test"
    )
    reply = await admin.client.put(f"{ALIASES}/plain/pirate", json={"target": "pirate@1"})
    assert reply.status_code == 201


async def test_an_undo_to_what_was_retired_is_refused(admin: Admin) -> None:
    await registered(admin)
    await registered(admin, version="2")
    url = f"{ALIASES}/mini/pirate"
    for target in ("pirate@1", "pirate@2"):
        await admin.client.put(url, json={"target": target})
    await admin.client.post(f"{URL}/pirate@1/retire")
    assert_problem(await admin.client.post(f"{url}/undo"), 422, "pirate@1 is retired")


async def test_the_aliases_of_a_deleted_deployment_are_gone(admin: Admin) -> None:
    await registered(admin)
    await admin.client.put(f"{ALIASES}/mini/pirate", json={"target": "pirate@1"})
    await admin.client.delete("/admin/v1/deployments/mini")
    assert (await admin.client.get(ALIASES)).json() == []
    assert_problem(await admin.client.get(f"{ALIASES}/mini/pirate"), 404, "'mini'")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"model": "other", "max_adapters": 2}, "made for penstock-mini, not for other"),
        ({"model": "penstock-mini"}, "max_adapters is 0"),
        ({"model": "penstock-mini", "max_adapter_rank": 4}, "rank 8"),
    ],
)
async def test_a_deployment_whose_aliases_would_not_fit_is_not_changed(
    admin: Admin, spec: dict[str, Any], words: str
) -> None:
    await registered(admin)
    await admin.client.put(f"{ALIASES}/mini/pirate", json={"target": "pirate@1"})
    url = "/admin/v1/deployments/mini"
    reply = await admin.client.put(url, json={"engine": "simulated", **spec})
    assert_problem(reply, 409, "mini:pirate names pirate@1", words)
    await admin.client.delete(f"{ALIASES}/mini/pirate")
    assert (await admin.client.put(url, json={"engine": "simulated", **spec})).status_code == 200


async def test_an_alias_is_changed_only_as_the_caller_read_it(admin: Admin) -> None:
    await registered(admin)
    await registered(admin, version="2")
    url = f"{ALIASES}/mini/pirate"
    one, two = {"target": "pirate@1"}, {"target": "pirate@2"}
    made = (await admin.client.put(url, json=one)).headers["etag"]
    assert (await admin.client.get(url)).headers["etag"] == made
    moved = await admin.client.put(url, json=two, headers={"if-match": made})
    assert (moved.status_code, moved.headers["etag"] != made) == (200, True)
    late = {"if-match": made}
    assert_problem(await admin.client.put(url, json=one, headers=late), 412, "read it again")
    assert_problem(await admin.client.post(f"{url}/undo", headers=late), 412, "mini:pirate")
    assert_problem(await admin.client.delete(url, headers=late), 412)
    assert (await admin.client.get(url)).json()["target"] == "pirate@2"
    now = {"if-match": moved.headers["etag"]}
    undone = await admin.client.post(f"{url}/undo", headers=now)
    assert (undone.json()["target"], undone.headers["etag"] != made) == ("pirate@1", True)
    anyhow = await admin.client.delete(url, headers={"if-match": "*"})
    assert anyhow.status_code == 204


async def test_an_alias_is_made_only_where_there_is_none(admin: Admin) -> None:
    await registered(admin)
    url, body = f"{ALIASES}/mini/pirate", {"target": "pirate@1"}
    assert_problem(await admin.client.put(url, json=body, headers={"if-match": "*"}), 412, "there")
    made = await admin.client.put(url, json=body, headers={"if-none-match": "*"})
    assert made.status_code == 201
    again = await admin.client.put(url, json=body, headers={"if-none-match": "*"})
    assert_problem(again, 412, "alias mini:pirate exists")


async def test_a_change_of_the_preload_alone_is_one_that_if_match_sees(admin: Admin) -> None:
    await registered(admin)
    url, body = f"{ALIASES}/mini/pirate", {"target": "pirate@1"}
    made = (await admin.client.put(url, json=body)).headers["etag"]
    await admin.client.put(url, json={**body, "preload": 1})
    assert_problem(await admin.client.delete(url, headers={"if-match": made}), 412)
