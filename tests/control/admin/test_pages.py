"""Lists in pages: those that grow with a cluster, each by what names its things."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from tests.control.admin.app_harness import Admin, assert_problem, running_admin

MINI = {"name": "mini", "engine": "simulated", "model": "penstock-mini"}


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        yield admin


async def test_a_list_is_told_in_pages_by_name(admin: Admin) -> None:
    path = "/admin/v1/deployments"
    for name in ("c", "a", "d", "b"):
        await admin.client.post(path, json={**MINI, "name": name})

    async def page(**params: int | str) -> list[str]:
        return [it["name"] for it in (await admin.client.get(path, params=params)).json()]

    assert await page() == ["a", "b", "c", "d"]
    assert await page(limit=3) == ["a", "b", "c"]
    assert await page(limit=3, after="c") == ["d"]
    assert await page(after="bb") == ["c", "d"]
    assert await page(after="d") == []
    for wrong in ("limit=0", "limit=1001", "limit=some"):
        assert_problem(await admin.client.get(f"{path}?{wrong}"), 422, "limit")


async def test_every_list_has_pages(admin: Admin, document: Mapping[str, Any]) -> None:
    without_pages = {
        path.removeprefix("/admin/v1")
        for path, methods in document["paths"].items()
        if "array" in json.dumps(methods.get("get", {}).get("responses", {}).get("200", {}))
        and "after" not in {it["name"] for it in methods["get"].get("parameters", ())}
    }
    assert without_pages == set()


@pytest.mark.parametrize(
    ("path", "body"),
    [("tenants/acme/keys", {"name": "ci"}), ("tokens", {"name": "ci", "role": "viewer"})],
)
async def test_keys_and_tokens_are_told_in_pages_by_id(
    admin: Admin, path: str, body: dict[str, str]
) -> None:
    await admin.client.post("/admin/v1/tenants", json={"id": "acme"})
    for number in range(3):
        await admin.client.post(f"/admin/v1/{path}", json={**body, "name": f"ci-{number}"})

    async def page(**params: int | str) -> list[str]:
        reply = await admin.client.get(f"/admin/v1/{path}", params=params)
        return [each["id"] for each in reply.json()]

    whole = await page()
    assert len(whole) >= 3
    assert whole == sorted(whole)
    assert await page(limit=2) == whole[:2]
    assert await page(limit=100, after=whole[1]) == whole[2:]
