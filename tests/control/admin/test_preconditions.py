"""What a client that follows HTTP finds: preconditions, locations, methods, documents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from tests.control.admin.app_harness import Admin, assert_problem, running_admin

MINI = {"name": "mini", "engine": "simulated", "model": "penstock-mini"}
SPEC = {"engine": "simulated", "model": "penstock-mini"}
DEPLOYMENTS = "/admin/v1/deployments"
ONE = f"{DEPLOYMENTS}/mini"


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        yield admin


async def test_put_with_if_none_match_creates_and_never_overwrites(admin: Admin) -> None:
    only_new = {"if-none-match": "*"}
    first = await admin.client.put(ONE, json=SPEC, headers=only_new)
    assert first.status_code == 201
    second = await admin.client.put(ONE, json={**SPEC, "model": "other"}, headers=only_new)
    assert_problem(second, 412, "'mini' exists")
    assert (await admin.client.get(ONE)).json()["spec"]["model"] == "penstock-mini"


async def test_what_is_created_says_where_it_is(admin: Admin) -> None:
    posted = await admin.client.post(DEPLOYMENTS, json=MINI)
    put = await admin.client.put(f"{DEPLOYMENTS}/other", json=SPEC)
    assert posted.headers["location"] == ONE
    assert put.headers["location"] == f"{DEPLOYMENTS}/other"
    assert "location" not in (await admin.client.put(ONE, json=SPEC)).headers


async def test_an_etag_names_what_was_read_and_is_taken_by_if_match(admin: Admin) -> None:
    created = (await admin.client.post(DEPLOYMENTS, json=MINI)).headers["etag"]
    assert (await admin.client.get(ONE)).headers["etag"] == created
    scaled = await admin.client.post(
        f"{ONE}/scale", json={"replicas": 2}, headers={"if-match": created}
    )
    assert scaled.status_code == 200
    assert scaled.headers["etag"] != created
    late = await admin.client.put(ONE, json=SPEC, headers={"if-match": created})
    assert_problem(late, 412, "read it again")


async def test_if_match_takes_several_tags_as_http_has_it(admin: Admin) -> None:
    created = (await admin.client.post(DEPLOYMENTS, json=MINI)).headers["etag"]
    several = {"if-match": f'"7-other", {created}'}
    assert (await admin.client.put(ONE, json=SPEC, headers=several)).status_code == 200
    late = {"if-match": '"7-other", "8"'}
    assert_problem(await admin.client.put(ONE, json=SPEC, headers=late), 412, "not 7-other or 8")


async def test_the_audit_trail_goes_on_behind_the_page_before(admin: Admin) -> None:
    await admin.client.post(DEPLOYMENTS, json=MINI)
    await admin.client.post(f"{ONE}/scale", json={"replicas": 2})
    first = (await admin.client.get("/admin/v1/audit", params={"limit": 1})).json()
    second = await admin.client.get("/admin/v1/audit", params={"limit": 1, "after": first["next"]})
    told = [each["what"] for page in (first, second.json()) for each in page["entries"]]
    assert told == ["scale deployment mini to 2", "create deployment mini"]


async def test_a_namesake_made_later_does_not_match_the_etag_of_the_first(admin: Admin) -> None:
    first = (await admin.client.post(DEPLOYMENTS, json=MINI)).headers["etag"]
    await admin.client.delete(ONE)
    await admin.client.post(DEPLOYMENTS, json=MINI)
    assert_problem(await admin.client.delete(ONE, headers={"if-match": first}), 412)


async def test_a_wrong_method_is_told_all_the_right_ones(admin: Admin) -> None:
    many = await admin.client.patch(DEPLOYMENTS, json={})
    assert_problem(many, 405)
    assert many.headers["allow"] == "GET, POST"
    one = await admin.client.patch(ONE, json={})
    assert one.headers["allow"] == "DELETE, GET, PUT"


async def test_the_document_tells_of_every_answer(
    admin: Admin, document: Mapping[str, Any]
) -> None:
    put = document["paths"]["/admin/v1/deployments/{name}"]["put"]
    assert {"200", "201", "412", "4XX", "5XX"} <= put["responses"].keys()
    assert put["responses"]["201"]["content"]["application/json"]["schema"]["$ref"].endswith(
        "DeploymentModel"
    )
    schemas = document["components"]["schemas"]
    engines = ["vllm", "simulated", "bedrock", "openai", "canned"]
    assert schemas["SpecModel"]["properties"]["engine"]["enum"] == engines
    assert schemas["Role"]["enum"] == ["viewer", "operator", "admin", "router"]
    assert "ready" in schemas["ReplicaModel"]["properties"]["state"]["enum"]
    assert "HTTPValidationError" not in str(document)
    for path, methods in document["paths"].items():
        for operation in methods.values():
            if path.startswith("/admin/"):
                refused = operation["responses"]["4XX"]["content"]
                assert set(refused) == {"application/problem+json"}
                assert refused["application/problem+json"]["schema"]["$ref"].endswith("/Problem")
