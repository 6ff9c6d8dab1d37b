"""The admin API over the real store of it, without a socket."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.state.cluster import (
    DeploymentCounts,
    Gateway,
    GatewayReport,
    GatewayState,
)
from penstock.control.state.fleet.replica import ReplicaState
from tests.control.admin.app_harness import Admin, assert_problem, running_admin
from tests.fakes.control_values import NOON, deployment, node, replica

MINI = {"name": "mini", "engine": "simulated", "model": "penstock-mini"}
SPEC = {"engine": "simulated", "model": "penstock-mini"}


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        yield admin


async def send(client: httpx.AsyncClient, method: str, path: str, body: object) -> httpx.Response:
    """Sends what httpx itself would refuse to write: NaN, halves of surrogate pairs."""
    url, headers = f"/admin/v1/deployments{path}", {"content-type": "application/json"}
    return await client.request(method, url, content=json.dumps(body), headers=headers)


async def test_a_created_deployment_is_shown_and_stored(admin: Admin) -> None:
    engine_args = {"max_num_seqs": 20, "enable_lora": True, "cpu-threads": 0.5, "dtype": "y"}
    reply = await admin.client.post(
        "/admin/v1/deployments",
        json={**MINI, "engine": "vllm", "replicas": 2, "engine_args": engine_args},
    )
    assert reply.status_code == 201
    body = reply.json()
    assert (body["name"], body["generation"], body["status"]["wanted"]) == ("mini", 1, 2)
    assert body["spec"]["engine_args"] == {
        "cpu-threads": "0.5",
        "dtype": "y",
        "enable_lora": "true",
        "max_num_seqs": "20",
    }
    assert (await admin.client.get("/admin/v1/deployments/mini")).json() == body
    assert (await admin.client.get("/admin/v1/deployments")).json() == [body]
    entry, *_ = await admin.store.audit(10)
    assert (entry.who, entry.what, entry.before) == ("admin", "create deployment mini", None)


async def test_a_duplicate_is_a_conflict_that_no_sdk_retries(admin: Admin) -> None:
    await admin.client.post("/admin/v1/deployments", json=MINI)
    reply = await admin.client.post("/admin/v1/deployments", json=MINI)
    assert_problem(reply, 409, "'mini' exists")
    assert reply.headers["x-should-retry"] == "false"


async def test_put_creates_then_changes_then_does_nothing(admin: Admin) -> None:
    url = "/admin/v1/deployments/mini"
    first = await admin.client.put(url, json=SPEC)
    second = await admin.client.put(url, json={**SPEC, "model": "other"})
    third = await admin.client.put(url, json={**SPEC, "model": "other"})
    assert [r.status_code for r in (first, second, third)] == [201, 200, 200]
    assert [r.json()["generation"] for r in (first, second, third)] == [1, 2, 2]


async def test_what_get_gives_put_takes(admin: Admin) -> None:
    body = {
        **MINI,
        "max_adapters": 3,
        "max_adapter_rank": 64,
        "labels": {"team": "x"},
        "max_queued": 3,
    }
    created = (await admin.client.post("/admin/v1/deployments", json=body)).json()
    again = await admin.client.put("/admin/v1/deployments/mini", json=created["spec"])
    assert again.json()["generation"] == created["generation"]


async def test_a_dry_run_checks_everything_and_changes_nothing(admin: Admin) -> None:
    path, dry = "/admin/v1/deployments", {"dry_run": True}
    one = f"{path}/mini"
    for reply in (
        await admin.client.post(path, json={**MINI, "replicas": 2}, params=dry),
        await admin.client.put(one, json={**SPEC, "replicas": 2}, params=dry),
    ):
        assert (reply.status_code, reply.json()["spec"]["replicas"]) == (201, 2)
    assert (await admin.client.get(path)).json() == []
    made = (await admin.client.post(path, json=MINI)).json()
    assert_problem(await admin.client.post(path, json=MINI, params=dry), 409, "'mini' exists")
    put = await admin.client.put(one, json={**SPEC, "replicas": 3}, params=dry)
    scaled = await admin.client.post(f"{one}/scale", json={"replicas": 3}, params=dry)
    set_ = await admin.client.patch(f"{one}/settings", json={"max_queued": 3}, params=dry)
    assert [reply.json()["generation"] for reply in (put, scaled, set_)] == [2, 2, 2]
    assert scaled.json()["spec"]["replicas"] == 3
    circle = {"degrade": ["fallback:mini"]}
    assert_problem(await admin.client.patch(f"{one}/settings", json=circle, params=dry), 422)
    assert (await admin.client.delete(one, params=dry)).status_code == 204
    assert (await admin.client.get(one)).json() == made
    told = [entry.what for entry in await admin.store.audit(10) if entry.key.kind == "deployment"]
    assert told == ["create deployment mini"]


async def test_every_route_refuses_a_query_parameter_that_it_does_not_know(
    admin: Admin, document: Mapping[str, Any]
) -> None:
    asked = [
        (method, re.sub(r"{\w+}", "x", path))
        for path, methods in document["paths"].items()
        for method in methods
        if path.startswith("/admin/")
    ]
    assert len(asked) > 40
    for method, path in asked:
        body: dict[str, str] | None = None if method in ("get", "delete") else {}
        reply = await admin.client.request(method, path, json=body, params={"no_such": "1"})
        assert_problem(reply, 422, "no query parameter 'no_such' here: there are ")


async def test_scale_changes_the_count_only(admin: Admin) -> None:
    await admin.client.post("/admin/v1/deployments", json=MINI)
    reply = await admin.client.post("/admin/v1/deployments/mini/scale", json={"replicas": 0})
    assert reply.json()["spec"]["replicas"] == 0
    assert reply.json()["status"]["phase"] == "stopped"
    assert_problem(
        await admin.client.post("/admin/v1/deployments/none/scale", json={"replicas": 1}), 404
    )


async def test_a_deleted_deployment_is_gone(admin: Admin) -> None:
    await admin.client.post("/admin/v1/deployments", json=MINI)
    assert (await admin.client.delete("/admin/v1/deployments/mini")).status_code == 204
    assert_problem(await admin.client.get("/admin/v1/deployments/mini"), 404, "'mini'")
    assert_problem(await admin.client.delete("/admin/v1/deployments/mini"), 404)


@pytest.mark.parametrize("wrong", ["2", '"2"', 'W/"2"', '"2-u1"'])
async def test_an_if_match_of_another_generation_changes_nothing(admin: Admin, wrong: str) -> None:
    await admin.client.post("/admin/v1/deployments", json=MINI)
    url, headers = "/admin/v1/deployments/mini", {"if-match": wrong}
    put = await admin.client.put(url, json={**SPEC, "model": "other"}, headers=headers)
    assert_problem(put, 412, ", not 2")
    scale = await admin.client.post(f"{url}/scale", json={"replicas": 3}, headers=headers)
    assert_problem(scale, 412)
    assert_problem(await admin.client.delete(url, headers=headers), 412)
    assert (await admin.client.get(url)).json()["generation"] == 1


@pytest.mark.parametrize("right", ["1", '"1"', "*"])
async def test_an_if_match_of_this_generation_goes_through(admin: Admin, right: str) -> None:
    await admin.client.post("/admin/v1/deployments", json=MINI)
    url, headers = "/admin/v1/deployments/mini", {"if-match": right}
    reply = await admin.client.put(url, json={**SPEC, "model": "other"}, headers=headers)
    assert reply.json()["generation"] == 2


async def test_an_if_match_of_a_deleted_namesake_changes_nothing(admin: Admin) -> None:
    first = (await admin.client.post("/admin/v1/deployments", json=MINI)).json()
    url, headers = "/admin/v1/deployments/mini", {"if-match": f'"1-{first["uid"]}"'}
    put = await admin.client.put(url, json={**SPEC, "model": "other"}, headers=headers)
    assert put.json()["generation"] == 2
    await admin.client.delete(url)
    second = (await admin.client.post("/admin/v1/deployments", json=MINI)).json()
    assert (second["generation"], second["uid"] == first["uid"]) == (1, False)
    assert_problem(await admin.client.delete(url, headers=headers), 412, "read it again")


async def test_an_if_match_that_is_no_generation_is_refused(admin: Admin) -> None:
    await admin.client.post("/admin/v1/deployments", json=MINI)
    reply = await admin.client.delete("/admin/v1/deployments/mini", headers={"if-match": "x"})
    assert_problem(reply, 422, "If-Match is 'x'")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"name": "Not A Label"}, "name is 'Not A Label'"),
        ({"name": None}, "name"),
        ({"engine": "magic"}, "engine is 'magic'"),
        ({"model": 7}, "model"),
        ({"replicas": -1}, "replicas"),
        ({"replicas": 1.5}, "replicas"),
        ({"replicas": True}, "replicas"),
        ({"max_queued": 2**40}, "max_queued"),
        ({"kv_pressure": 1.5}, "kv_pressure"),
        ({"kv_pressure": "0.5"}, "kv_pressure"),
        ({"selection_policy": "fastest"}, "least_loaded"),
        ({"canary": [{"deployment": "b", "permille": 1001}]}, "canary"),
        ({"canary": [{"deployment": "mini", "permille": 1}]}, "itself"),
        ({"engine_args": {"--x": "1"}}, "without dashes"),
        ({"engine_args": {"token_per_second": 5}}, "tokens_per_second"),
        ({"engine": "vllm", "engine_args": {"max_model_length": 5}}, "max_model_len"),
        ({"engine_args": {"x": "a\ud800"}}, "x"),
        ({"adapters": [{"alias": "p", "adapter": "p@1", "source": "s"}]}, "/admin/v1/adapters"),
        ({"max_adapters": 513}, "max_adapters"),
        ({"max_adapter_rank": -1}, "max_adapter_rank"),
        ({"labels": {"a": "\x00"}}, "printable"),
        ({"repliacs": 2}, "repliacs"),
    ],
)
async def test_a_bad_value_is_named(admin: Admin, change: dict[str, Any], word: str) -> None:
    reply = await send(admin.client, "POST", "", {**MINI, **change})
    assert_problem(reply, 422, word)
    assert not admin.cluster.view().deployments


@pytest.mark.parametrize("body", [b"{", b"", b"\xff\xfe", b"[]", b"null", b'{"name": NaN'])
async def test_a_body_that_is_no_json_object_is_refused(admin: Admin, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    reply = await admin.client.post("/admin/v1/deployments", content=body, headers=headers)
    assert_problem(reply, reply.status_code)
    assert reply.status_code in (400, 422)


async def test_unknown_paths_and_methods_are_problems_too(admin: Admin) -> None:
    assert_problem(await admin.client.get("/admin/v1/nothing"), 404)
    assert_problem(await admin.client.patch("/admin/v1/deployments"), 405)


async def test_a_store_that_fails_is_503_and_nothing_is_changed(admin: Admin) -> None:
    admin.store.failing = True
    reply = await admin.client.post("/admin/v1/deployments", json=MINI)
    assert_problem(reply, 503, "told to fail")
    assert not admin.cluster.view().deployments


async def test_a_fault_of_ours_is_a_problem_without_its_traceback(admin: Admin) -> None:
    async def broken() -> None:
        raise RuntimeError("secret")

    admin.app.add_api_route("/broken", broken)
    reply = await admin.client.get("/broken")
    assert_problem(reply, 500, "head's log")
    assert "secret" not in reply.text


async def test_lists_show_what_the_head_knows(admin: Admin) -> None:
    gateway = Gateway(
        "gw-1",
        GatewayState.READY,
        address="127.0.0.1:8080",
        pid=7,
        report=GatewayReport(NOON, 12, (DeploymentCounts("a", queued=1), DeploymentCounts("b", 2))),
    )
    await admin.cluster.observe(
        lambda view: (
            view.with_node(node())
            .with_deployment(deployment())
            .with_replica(replica("a"))
            .with_replica(replica("b", ReplicaState.BACKOFF, deployment="other"))
            .with_gateway(gateway)
        ),
        "test",
    )
    replicas = (await admin.client.get("/admin/v1/replicas")).json()
    assert [(r["id"], r["state"], r["address"], r["pid"]) for r in replicas] == [
        ("a", "ready", "a:9000", 1),
        ("b", "foreign", "b:9000", 1),
    ]
    other = (await admin.client.get("/admin/v1/replicas?deployment=other")).json()
    assert [r["id"] for r in other] == ["b"]
    (found,) = (await admin.client.get("/admin/v1/nodes")).json()
    assert (found["id"], found["state"], found["address"]) == ("n1", "ready", "n1:7000")
    (shown,) = (await admin.client.get("/admin/v1/gateways")).json()
    assert (shown["state"], shown["address"], shown["pid"]) == ("ready", "127.0.0.1:8080", 7)
    assert (shown["snapshot_version"], shown["queued"]) == (12, 3)


async def test_the_documents_load_nothing_from_elsewhere(admin: Admin) -> None:
    page = await admin.client.get("/docs")
    assert page.status_code == 200
    assert "//" not in page.text.replace("// ", "")
    for path in ("swagger-ui-bundle.js", "swagger-ui.css"):
        assert path in page.text
        assert (await admin.client.get(f"/static-offline-docs/{path}")).status_code == 200


async def test_what_the_documents_offer_to_send_is_taken_and_small(
    admin: Admin, document: Mapping[str, Any]
) -> None:
    schemas = document["components"]["schemas"]
    offered = _offered(schemas, "NewDeployment")
    made = await send(admin.client, "POST", "", offered)
    assert made.status_code == 201, made.text
    assert (made.json()["spec"]["replicas"], made.json()["spec"]["labels"]) == (
        1,
        {"team": "search"},
    )
    scale = _offered(schemas, "ScaleModel")
    scaled = await send(admin.client, "POST", f"/{offered['name']}/scale", scale)
    assert scaled.json()["spec"]["replicas"] == 2


async def test_the_documents_tell_the_refusals_that_a_caller_has_to_reckon_with(
    admin: Admin, document: Mapping[str, Any]
) -> None:
    paths = document["paths"]
    put = paths["/admin/v1/deployments/{name}"]["put"]["responses"]
    assert {"200", "201", "400", "401", "403", "404", "409", "412", "422", "503"} <= put.keys()
    assert put["409"]["content"].keys() == {"application/problem+json"}
    listed = paths["/admin/v1/deployments"]["get"]["responses"]
    assert not {"404", "409", "412"} & listed.keys()


def _offered(schemas: dict[str, Any], name: str) -> dict[str, Any]:
    """The body that a page made of the documents offers for trying out."""
    body = {}
    for field, schema in schemas[name]["properties"].items():
        if "$ref" not in schema.get("items", {}):
            body[field] = schema["examples"][0] if "examples" in schema else schema["default"]
    return body


async def test_the_version_is_told(admin: Admin) -> None:
    assert (await admin.client.get("/livez")).status_code == 200
    version = (await admin.client.get("/admin/v1/version")).json()
    assert (version["version"], version["snapshot_version"]) == ("1.2.3", 0)
    assert (version["held"], version["unreadable"]) == ("", [])


texts = st.text(st.characters(exclude_categories=()))
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
SOME_SETTINGS = ["max_ongoing", "kv_pressure", "selection_policy", "canary"]
fields = st.sampled_from(
    ["name", "engine", "model", "engine_args", "adapters", "replicas", "labels", *SOME_SETTINGS]
)


def test_no_body_whatever_is_a_fault_of_ours() -> None:
    # One app for all examples: to make one takes a hundred times as long as to ask it.
    with asyncio.Runner() as loop:
        stack = AsyncExitStack()
        admin = loop.run(stack.enter_async_context(running_admin()))

        @given(change=st.dictionaries(fields, anything, max_size=3), create=st.booleans())
        def holds(change: dict[str, Any], create: bool) -> None:
            loop.run(_is_no_fault_of_ours(admin.client, change, create))

        holds()
        loop.run(stack.aclose())


async def _is_no_fault_of_ours(
    client: httpx.AsyncClient, change: dict[str, Any], create: bool
) -> None:
    if create:
        reply = await send(client, "POST", "", {**MINI, **change})
    else:
        reply = await send(client, "PUT", "/mini", {**SPEC, **change})
    assert reply.status_code < 500, reply.text
    listed = await client.get("/admin/v1/deployments")
    assert listed.status_code == 200
    for one in listed.json():  # the next example begins with none, as this one did
        assert (await client.delete(f"/admin/v1/deployments/{one['name']}")).is_success
    assert (await client.get("/admin/v1/deployments")).json() == []
