"""Replicas' logs in the admin API: asked of the agent that keeps them, passed on, and their end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI

from penstock.control.admin.fleet.logs_api import logs_api
from penstock.control.errors import NodeUnreachable, Unavailable
from penstock.control.managers.fleet.replica_logs import (
    MOST_READERS,
    LogPart,
    LogRequest,
    ReplicaLogs,
)
from penstock.control.state.fleet.replica import NodeState
from penstock.control.state.tenancy.tokens import Role
from tests.control.admin.app_harness import SECRET, Admin, assert_problem, bearer, running_admin
from tests.fakes.control_values import node, replica
from tests.fakes.waiting import until

LOG = "/admin/v1/replicas/r1/logs"
HERE = ("n1:7000", "r1")
Message = MutableMapping[str, Any]


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        await admin.cluster.observe(
            lambda view: view.with_node(node("n1")).with_node(node("n2")).with_replica(replica()),
            "test",
        )
        admin.logs.kept[HERE] = [LogPart(b"one\ntwo\n")]
        yield admin


async def test_what_is_asked_for_reaches_the_agent_and_its_answer_the_reader(admin: Admin) -> None:
    reply = await admin.client.get(LOG)
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert reply.text == "one\ntwo\n"
    await admin.client.get(f"{LOG}?tail=7&previous=true")
    asked = [("n1:7000", "r1", LogRequest(500)), ("n1:7000", "r1", LogRequest(7, previous=True))]
    assert admin.logs.asked == asked


async def test_logs_are_for_operators(admin: Admin) -> None:
    viewer, operator = await admin.headers(Role.VIEWER), await admin.headers(Role.OPERATOR)
    assert_problem(await admin.client.get(LOG, headers=viewer), 403, "operator")
    assert (await admin.client.get(LOG, headers=operator)).text == "one\ntwo\n"


@pytest.mark.parametrize(
    ("query", "words"), [("tail=10001", "tail"), ("tail=-1", "tail"), ("lines=3", "'lines'")]
)
async def test_what_cannot_be_asked_for_is_refused(admin: Admin, query: str, words: str) -> None:
    assert_problem(await admin.client.get(f"{LOG}?{query}"), 422, words)
    assert admin.logs.asked == []


async def test_what_the_agent_says_and_why_it_breaks_off_stand_among_the_lines(
    admin: Admin,
) -> None:
    gone = NodeUnreachable("the node agent at n1:7000 has said nothing for 15 s")
    admin.logs.kept[HERE] = [LogPart(b"", "only the last 9 bytes are shown"), LogPart(b"a\n"), gone]
    assert (await admin.client.get(LOG)).text.splitlines() == [
        "penstock: only the last 9 bytes are shown",
        "a",
        "penstock: error: node n1: the node agent at n1:7000 has said nothing for 15 s",
    ]


async def test_an_agent_that_does_not_answer_at_all_is_an_error(admin: Admin) -> None:
    admin.logs.kept[HERE] = [Unavailable("it is of an older version")]
    assert_problem(await admin.client.get(LOG), 503, "node n1: it is of an older version")


async def test_a_replica_that_is_gone_is_looked_for_at_every_node_that_is_heard(
    admin: Admin,
) -> None:
    admin.logs.kept[("n2:7000", "r9")] = [LogPart(b"why it failed\n")]
    url = "/admin/v1/replicas/r9/logs"
    assert (await admin.client.get(url)).text == "why it failed\n"
    admin.logs.kept[("n1:7000", "r9")] = [Unavailable("it is away")]
    assert (await admin.client.get(url)).text == "why it failed\n"
    silent = node("n2", NodeState.SILENT)
    await admin.cluster.observe(lambda view: view.with_node(silent), "test")
    assert_problem(
        await admin.client.get(url), 404, "no log of a replica 'r9'", "n1, n2 did not answer"
    )


async def test_one_that_never_was_is_told_so(admin: Admin) -> None:
    reply = await admin.client.get("/admin/v1/replicas/none/logs")
    assert_problem(reply, 404, "no log of a replica 'none' is kept")
    assert reply.json()["type"].endswith("unknown-replica")


class Reader:
    """Reads a log without a socket, as slowly as it likes."""

    def __init__(self, app: FastAPI, query: str) -> None:
        self.taken: list[Message] = []
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
            "path": LOG,
            "raw_path": LOG.encode(),
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

    async def _receive(self) -> Message:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        await self.takes.wait()
        self.taken.append(message)


async def test_who_leaves_is_read_for_no_more(admin: Admin) -> None:
    reader = Reader(admin.app, "follow=true")
    reader.takes.set()
    async with asyncio.TaskGroup() as group:
        group.create_task(reader.read())
        await until(lambda: len(reader.taken) == 2, "the first lines")
        assert admin.logs.reading == 1
        reader.left.set()
    assert admin.logs.reading == 0


async def test_who_takes_nothing_any_more_makes_room(admin: Admin) -> None:
    logs = ReplicaLogs(admin.cluster, admin.logs)
    impatient = logs_api(logs, taken_within=timedelta(milliseconds=20))
    admin.app.router.routes[:0] = impatient.routes
    await Reader(admin.app, "follow=true").read()
    assert admin.logs.reading == 0


async def test_so_many_read_at_a_time(admin: Admin) -> None:
    readers = [Reader(admin.app, "follow=true") for _ in range(MOST_READERS)]
    async with asyncio.TaskGroup() as group:
        for reader in readers:
            group.create_task(reader.read())
        await until(lambda: admin.logs.reading == MOST_READERS, "all of them")
        assert_problem(await admin.client.get(LOG), 503, "32 logs are read here already")
        for reader in readers:
            reader.takes.set()
            reader.left.set()
    with suppress(AssertionError):
        await until(lambda: admin.logs.reading == 0, "their end")
    assert (await admin.client.get(LOG)).status_code == 200
