"""What holds for every route that changes something, each asked in a world that has one of all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import httpx
import pytest

from penstock.control.state.tenancy.tokens import Role
from tests.control.admin.app_harness import assert_problem
from tests.control.admin.whole_world import API, SHOWN, WRITES, World, whole_world

ADMINS = ("POST /tokens", "DELETE /tokens/{token_id}")
# What also a head does that holds still.
NOT_STORED = (
    "DELETE /quarantine/{fingerprint}",
    "POST /deployments/{name}/test",
    "POST /gateways/{gateway_id}/replace",
)
WHERE_IT_IS = "tests/control/admin/whole_world.py, WRITES"
CHANGING = [route for route, asked in WRITES.items() if asked.of != "-"]
NEVER_CHANGED = {"/requests/{request_id}"}
SECRETS = {"POST /tokens": "token", "POST /tenants/{tenant_id}/keys": "key"}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with whole_world() as world:
        yield world


def shape(value: Any) -> Any:
    """The fields of an answer, whatever they say."""
    return {name: shape(it) for name, it in value.items()} if isinstance(value, dict) else None


async def test_every_route_that_changes_something_is_asked_here(
    document: Mapping[str, Any],
) -> None:
    found = {
        f"{method.upper()} {path.removeprefix(API)}"
        for path, methods in document["paths"].items()
        for method in methods
        if method != "get"
    }
    assert found == set(WRITES), f"add what is new to {WHERE_IT_IS}"


async def test_whatever_is_shown_alone_and_can_be_changed_has_an_etag(
    world: World, document: Mapping[str, Any]
) -> None:
    paths = document["paths"]
    alone = {p.removeprefix(API) for p, told in paths.items() if "get" in told and p[-1] == "}"}
    assert alone - NEVER_CHANGED == set(SHOWN), (
        "add what is new to tests/control/admin/whole_world.py, SHOWN"
    )
    for path in SHOWN.values():
        assert await world.tag_at(path) == await world.tag_at(path), path


async def test_a_dry_run_changes_nothing(world: World) -> None:
    before = world.version
    for route in WRITES:
        reply = await world.ask(route, dry_run=True)
        assert reply.is_success, (route, reply.text)
        assert "etag" not in reply.headers, route
        assert world.version == before, route
    assert world.admin.replicas.asked == []


async def test_a_dry_run_is_refused_where_the_change_would_be(world: World) -> None:
    cluster = world.admin.cluster
    cluster.replace(replace(cluster.view(), held="another head is in command"))
    before = world.version
    for route in WRITES.keys() - NOT_STORED:
        dry, real = await world.ask(route, dry_run=True), await world.ask(route)
        assert_problem(dry, 503, "another head is in command")
        assert (dry.text, world.version) == (real.text, before), route


async def test_who_may_not_change_may_not_try(world: World) -> None:
    headers = {role: await world.admin.headers(role) for role in (Role.VIEWER, Role.OPERATOR)}
    before = world.version.view
    for route in WRITES:
        low = headers[Role.OPERATOR if route in ADMINS else Role.VIEWER]
        assert_problem(await world.ask(route, low, dry_run=True), 403, "has role")
    assert world.version.view is before


async def test_a_change_of_what_the_caller_has_not_read_names_both_tags(world: World) -> None:
    before = world.version
    for route in CHANGING:
        tag = await world.tag(route)
        assert_problem(await world.ask(route, {"if-match": '"7-other"'}), 412, tag, "7-other")
        assert (await world.ask(route, {"if-match": "*"}, dry_run=True)).is_success, route
    assert world.version == before


@pytest.mark.parametrize("route", WRITES)
async def test_a_change_is_made_of_what_was_read_and_says_why_and_is_made_once(
    world: World, route: str
) -> None:
    tag = {"if-match": await world.tag(route)} if route in CHANGING else {}
    headers = {**tag, "x-penstock-reason": "it was late", "idempotency-key": "k-1"}
    dry = await world.ask(route, headers, dry_run=True)
    real = await world.ask(route, headers)
    assert real.status_code == dry.status_code
    if real.content:
        assert shape(dry.json()) == shape(real.json())
        assert "etag" in real.headers or route.endswith(("/test", "/apply"))
    if route not in NOT_STORED:
        assert any(": it was late" in entry.what for entry in await world.admin.store.audit(3))
    if route.startswith("POST"):
        await is_replayed(world, route, headers, real)


async def is_replayed(
    world: World, route: str, headers: dict[str, str], first: httpx.Response
) -> None:
    assert "idempotent-replayed" not in first.headers
    after, calls = world.version, len(world.admin.replicas.asked)
    again = await world.ask(route, headers)
    assert again.headers["idempotent-replayed"] == "true"
    assert (world.version, len(world.admin.replicas.asked)) == (after, calls)
    if secret := SECRETS.get(route):
        assert_problem(again, 409, "shown in that answer alone", first.headers["location"])
        stored = str([s.document for s in world.admin.store.documents.values()])
        assert first.json()[secret] not in stored
        return
    assert (again.status_code, again.content) == (first.status_code, first.content)
    for name in ("etag", "location", "content-type"):
        assert again.headers.get(name) == first.headers.get(name)


@pytest.mark.parametrize(
    "route",
    ["POST /deployments", "POST /deployments/{name}/test", "POST /adapters", "POST /tokens"],
)
async def test_posts_of_one_key_at_once_act_once(world: World, route: str) -> None:
    key = {"idempotency-key": "k-1"}
    replies = await asyncio.gather(*(world.ask(route, key) for _ in range(5)))
    acted = [it for it in replies if it.is_success and "idempotent-replayed" not in it.headers]
    assert len(acted) == 1, [it.text for it in replies]
    for other in (it for it in replies if it is not acted[0]):
        if "idempotent-replayed" not in other.headers:
            assert_problem(other, 409, "is under way")
            assert other.headers["retry-after"] == "1"
            assert "x-should-retry" not in other.headers
    assert len(world.admin.replicas.asked) <= 1
