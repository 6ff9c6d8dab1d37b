"""What gateways decided about requests, over the API: listed, one by one, and as they end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping
from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI

from penstock.control.admin.observe.requests_api import RequestsApi
from penstock.control.managers.observe.tail import MOST_WAITING
from penstock.control.state.cluster import Gateway, GatewayState
from penstock.control.state.tenancy.tokens import Role
from penstock.v1 import explain_pb2
from tests.control.admin.app_harness import (
    SECRET,
    Admin,
    assert_problem,
    bearer,
    client_of,
    running_admin,
)
from tests.fakes.control_values import NOON
from tests.fakes.explaining_gateway import record
from tests.fakes.waiting import until

PATH = "/admin/v1/requests"
NOON_US = int(NOON.timestamp()) * 1_000_000
Message = MutableMapping[str, Any]
WHOLE = record(
    "req_2", NOON_US, 429, outcome="rejected", drop_reason="queue_full", tenant="acme", key_id="k1",
    model="mini", error_code="rate_limit_exceeded", client_request_id="a/b", trace_id=b"\xab" * 16,
    message="every replica of `mini` is busy",
)  # fmt: skip
WHOLE.stays.add(deployment="mini", way=explain_pb2.Stay.WAY_NAMED).turn.running = 3


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        old = record("req_1", NOON_US - 3_600_000_000, tenant="other")
        admin.gateway.records += [old, WHOLE]
        yield admin


async def listed(admin: Admin, **params: str | int) -> list[str]:
    reply = await admin.client.get(PATH, params=params)
    assert reply.status_code == 200, reply.text
    return [each["request_id"] for each in reply.json()["requests"]]


async def test_requests_are_listed_by_what_is_asked_the_newest_first(admin: Admin) -> None:
    assert await listed(admin) == ["req_2", "req_1"]
    assert await listed(admin, tenant="acme") == ["req_2"]
    assert await listed(admin, status="4xx") == ["req_2"]
    assert await listed(admin, status="200") == ["req_1"]
    assert await listed(admin, since="30m") == ["req_2"]
    assert await listed(admin, since="2026-01-02T11:00:00Z") == ["req_2", "req_1"]
    await listed(admin, deployment="mini", reason="queue_full", slower_than_ms=7, limit=3)
    asked = admin.gateway.asked[-1].list
    assert (asked.deployment, asked.reason, asked.slower_than_ms) == ("mini", "queue_full", 7)
    assert asked.limit == 100


async def test_each_is_told_in_short_and_so_is_who_answered(admin: Admin) -> None:
    view = admin.cluster.view().with_gateway(Gateway("gw-9", GatewayState.BACKOFF))
    admin.cluster.replace(view)
    page = (await admin.client.get(PATH, params={"limit": 1})).json()
    (request,) = page["requests"]
    assert request == {
        "request_id": "req_2",
        "client_request_id": "a/b",
        "trace_id": "ab" * 16,
        "received_at": "2026-01-02T12:00:00Z",
        "gateway": "gw-1",
        "path": "/v1/chat/completions",
        "tenant": "acme",
        "key_id": "k1",
        "model": "mini",
        "prompt_version": "",
        "deployment": "mini",
        "replica": "",
        "status": 429,
        "outcome": "rejected",
        "reason": "queue_full",
        "rung": "",
        "attempts_made": 0,
        "duration_ms": 1.5,
        "first_byte_ms": None,
        "prompt_tokens": 0,
        "completion_tokens": 0,
    }
    assert [(each["id"], each["answered"]) for each in page["gateways"]] == [
        ("gw-1", True),
        ("gw-9", False),
    ]
    assert page["gateways"][0]["kept_since"] == "2026-01-02T11:00:00Z"
    assert "it has ended, and with it what it kept" in page["gateways"][1]["detail"]
    older = await admin.client.get(PATH, params={"limit": 1, "after": page["next"]})
    assert [each["request_id"] for each in older.json()["requests"]] == ["req_1"]


@pytest.mark.parametrize(
    "wrong",
    ["status=4", "status=6xx", "since=noon", "limit=0", "limit=1001", "after=x", "after=",
     "slower_than_ms=-1", "slower_than_ms=9223372036854775808", "before=3"],
)  # fmt: skip
async def test_what_cannot_be_asked_is_refused(admin: Admin, wrong: str) -> None:
    assert_problem(await admin.client.get(f"{PATH}?{wrong}"), 422, wrong.partition("=")[0])


async def test_one_is_told_whole_with_its_story_by_our_id_and_by_its_callers(
    admin: Admin,
) -> None:
    admin.gateway.records.append(record("req_0", 5, client_request_id="a/b"))
    for name, namesakes in (("req_2", []), ("a%2Fb", ["req_0"])):
        told = (await admin.client.get(f"{PATH}/{name}")).json()
        assert set(told) == {"gateway", "record", "story", "namesakes", "gateways"}
        assert told["record"]["request_id"] == "req_2"
        assert told["record"]["stays"][0]["way"] == "named"
        assert told["record"]["stays"][0]["turn"]["running"] == 3
        assert told["story"]["title"] == "req_2 was refused with 429 (queue_full), after 1.5 ms"
        assert told["story"]["facts"][0] == {
            "name": "its client was told",
            "text": "every replica of `mini` is busy",
        }
        assert told["story"]["line"][-1]["at_us"] == 1500
        assert told["namesakes"] == namesakes


async def test_one_that_is_forgotten_is_told_with_since_when_requests_are_kept(
    admin: Admin,
) -> None:
    reply = await admin.client.get(f"{PATH}/req_9")
    assert_problem(reply, 404, "'req_9'", "gw-1 keeps those since 2026-01-02 11:00:00 UTC")
    assert reply.json()["type"].endswith("unknown-request")


async def test_where_no_gateway_answers_it_is_told_as_that(admin: Admin) -> None:
    explain = admin.services.explain
    explain.disconnect(explain.connect("gw-1", "of its last life"))
    assert_problem(await admin.client.get(f"{PATH}/req_2"), 503, "no gateway answers: none is")


async def test_a_viewer_may_read_and_nobody_without_a_token(admin: Admin) -> None:
    headers = await admin.headers(Role.VIEWER)
    async with client_of(admin.app, "") as nobody:
        for path in (PATH, f"{PATH}/req_2"):
            assert (await admin.client.get(path, headers=headers)).status_code == 200
            assert (await nobody.get(path)).status_code == 401
        assert (await nobody.get(f"{PATH}/tail")).status_code == 401


async def test_where_a_request_came_from_is_told_to_operators_and_not_to_viewers(
    admin: Admin,
) -> None:
    admin.gateway.records.append(record("req_4", NOON_US, client="192.0.2.7"))
    for role, address in (("viewer", ""), ("operator", "192.0.2.7")):
        headers = await admin.headers(Role(role))
        told = await admin.client.get(f"{PATH}/req_4", headers=headers)
        assert told.json()["record"]["client"] == address
        assert ("192.0.2.7" in told.text) == bool(address)


class Reader:
    """Follows without a socket, as slowly as it likes."""

    def __init__(self, app: FastAPI, query: str = "") -> None:
        self.body = b""
        self.takes = asyncio.Event()
        self.left = asyncio.Event()
        self._app = app
        self._asked = False
        headers = {**bearer(SECRET), "host": "localhost"}
        self._scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "path": f"{PATH}/tail",
            "raw_path": f"{PATH}/tail".encode(),
            "query_string": query.encode(),
            "root_path": "",
            "scheme": "http",
            "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
            "server": ("127.0.0.1", 80),
            "client": ("127.0.0.1", 9),
        }

    async def read(self) -> None:
        """Until the answer ends, however it does."""
        await self._app(self._scope, self._receive, self._send)

    @property
    def told(self) -> list[tuple[str, Any]]:
        """What it has so far: each event's name and what it says."""
        blocks = self.body.decode().split("\n\n")[:-1]
        said = [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]
        return [(each.get("event", ""), json.loads(each["data"])) for each in said]

    async def _receive(self) -> Message:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        await self.takes.wait()
        self.body += message.get("body", b"")


async def test_a_follower_is_told_who_tells_and_then_each_request_as_it_ends(
    admin: Admin,
) -> None:
    reader = Reader(admin.app, "tenant=acme&status=4xx")
    reader.takes.set()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(reader.read())
        await until(lambda: admin.gateway.tails, "the tail")
        ((_, wanted),) = admin.gateway.tails.items()
        assert (wanted.tenant, wanted.status) == ("acme", 4)
        await admin.gateway.end(record("req_3", NOON_US))
        await until(lambda: len(reader.told) == 2, "the request")
        (first, gateways), (second, request) = reader.told
        assert (first, [each["id"] for each in gateways]) == ("gateways", ["gw-1"])
        assert (second, request["request_id"]) == ("", "req_3")
        reader.left.set()
    await until(lambda: not admin.gateway.tails, "nobody to be told")


async def test_a_follower_that_takes_too_slowly_is_told_how_much_it_lost(admin: Admin) -> None:
    reader = Reader(admin.app)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(reader.read())
        await until(lambda: admin.gateway.tails, "the tail")
        for n in range(MOST_WAITING + 7):
            await admin.gateway.end(record(f"req_{n}", NOON_US))
        reader.takes.set()
        await until(lambda: "left_out" in dict(reader.told), "what it lost")
        reader.left.set()
    assert dict(reader.told)["left_out"] == {"left_out": 7}


async def test_a_follower_that_takes_nothing_any_more_makes_room(admin: Admin) -> None:
    explain = admin.services.explain
    impatient = RequestsApi(explain, admin.clock, timedelta(milliseconds=20)).router()
    admin.app.router.routes[:0] = impatient.routes
    await Reader(admin.app).read()
    await until(lambda: not admin.gateway.tails, "its end")


async def test_followers_end_with_the_head(admin: Admin) -> None:
    reader = Reader(admin.app)
    reader.takes.set()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(reader.read())
        await until(lambda: reader.told, "who tells")
        admin.services.explain.close()
