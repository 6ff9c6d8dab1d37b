"""What happened, over the API: listed, and followed as server-sent events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock.control.state.events import KEPT_FOR, Event, EventKind, Reason
from penstock.control.state.tenancy.tokens import Role
from tests.control.admin.app_harness import Admin, assert_problem, client_of, running_admin
from tests.fakes.control_values import NOON

PATH = "/admin/v1/events"
SSE = {"accept": "text/event-stream"}


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        for name, reason in (("a", Reason.REPLICA_STARTED), ("b", Reason.REPLICA_FAILED)):
            event = Event(EventKind.REPLICA, name, reason, f"{name} ...", NOON, "mini")
            await admin.store.keep_events([event])
        joined = Event(EventKind.NODE, "n1", Reason.NODE_JOINED, "node n1 is there", NOON)
        await admin.store.keep_events([joined])
        yield admin


async def listed(admin: Admin, **params: str | int) -> list[int]:
    reply = await admin.client.get(PATH, params=params)
    assert reply.status_code == 200, reply.text
    return [each["id"] for each in reply.json()]


async def followed(admin: Admin, last_event_id: int | str = "", **params: str) -> list[Any]:
    """Events and gaps that a follower has until the head ends; the ids behind which it goes on."""
    admin.events.close()
    headers = SSE | ({"last-event-id": str(last_event_id)} if last_event_id != "" else {})
    reply = await admin.client.get(PATH, params=params, headers=headers)
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"].startswith("text/event-stream")
    found: list[Any] = []
    for block in filter(None, reply.text.split("\n\n")):
        said = dict(line.split(": ", 1) for line in block.splitlines())
        data = json.loads(said.get("data", "null"))
        if said.get("event") == "gap":
            found.append(("gap", data["after"]))
        else:
            assert data is None or data["id"] == int(said["id"])
            found.append(data["name"] if data else int(said["id"]))
    return found


async def test_events_are_listed_by_what_is_asked_and_in_pages(admin: Admin) -> None:
    assert await listed(admin) == [1, 2, 3]
    assert await listed(admin, kind="replica") == [1, 2]
    assert await listed(admin, deployment="mini", type="warning") == [2]
    assert await listed(admin, name="n1") == [3]
    assert await listed(admin, reason="ReplicaStarted") == [1]
    assert await listed(admin, since="2026-01-03T00:00:00Z") == []
    assert await listed(admin, limit=2) == [1, 2]
    assert await listed(admin, limit=2, after=2) == [3]
    assert await listed(admin, last=2) == [2, 3]
    (event,) = (await admin.client.get(PATH, params={"name": "b"})).json()
    assert event == {
        "id": 2,
        "kind": "replica",
        "name": "b",
        "deployment": "mini",
        "reason": "ReplicaFailed",
        "type": "warning",
        "text": "b ...",
        "count": 1,
        "first_at": "2026-01-02T12:00:00Z",
        "last_at": "2026-01-02T12:00:00Z",
    }


@pytest.mark.parametrize(
    "wrong",
    ["kind=nothing", "type=bad", "since=noon", "limit=0", "after=x", f"after={2**63}"],
)
async def test_what_cannot_be_asked_is_refused(admin: Admin, wrong: str) -> None:
    assert_problem(await admin.client.get(f"{PATH}?{wrong}"), 422, wrong.partition("=")[0])
    if wrong.startswith("after"):
        headers = {"accept": "text/event-stream", "last-event-id": wrong.partition("=")[2]}
        assert_problem(await admin.client.get(PATH, headers=headers), 422, "last-event-id")


async def test_a_viewer_may_read_events_and_nobody_without_a_token(admin: Admin) -> None:
    headers = await admin.headers(Role.VIEWER)
    assert (await admin.client.get(PATH, headers=headers)).status_code == 200
    async with client_of(admin.app, "") as nobody:
        assert (await nobody.get(PATH, headers=SSE)).status_code == 401


async def test_a_follower_begins_with_what_comes(admin: Admin) -> None:
    assert await followed(admin) == [3, 3]


async def test_a_follower_goes_on_behind_the_last_id_that_it_had(admin: Admin) -> None:
    assert await followed(admin, 1) == ["b", "n1"]
    assert await followed(admin, 3, after="1") == [3]
    assert await followed(admin, after="2") == ["n1"]
    assert await followed(admin, 0, kind="replica") == ["a", "b", 3]


async def test_a_follower_is_told_where_something_is_gone(admin: Admin) -> None:
    late = Event(EventKind.NODE, "n2", Reason.NODE_JOINED, "", NOON + 2 * KEPT_FOR)
    await admin.store.keep_events([late])
    assert await followed(admin, 1) == [("gap", 1), "n2"]
    assert await followed(admin, 3) == ["n2"]
    assert await followed(admin, 70) == [("gap", 70), "n2"]


async def test_a_store_that_cannot_be_read_is_an_error_before_the_stream_begins(
    admin: Admin,
) -> None:
    admin.store.unreadable = True
    for headers in ({}, SSE):
        assert_problem(await admin.client.get(PATH, headers=headers), 503, "told to fail")
