"""The logs of all processes in the admin API: an object on each line."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock.control.errors import Unavailable
from penstock.control.machine_logs.values import Author, LogQuestion
from penstock.control.state.tenancy.tokens import Role
from tests.control.admin.app_harness import Admin, assert_problem, running_admin
from tests.fakes.control_values import node
from tests.fakes.logging_machine import NOON_US, LoggingMachine, line_of

LOGS = "/admin/v1/logs"
HEAD, R1 = Author("head"), Author("replica", "mini-1")


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        await admin.cluster.observe(lambda view: view.with_node(node("n1")), "test")
        admin.logs.own.written = [line_of(HEAD, 2, "two")]
        admin.logs.machines["n1:7000"] = LoggingMachine(line_of(R1, 1, "one"))
        yield admin


async def told(admin: Admin, query: str = "") -> list[dict[str, Any]]:
    reply = await admin.client.get(f"{LOGS}{query}")
    assert reply.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in reply.text.splitlines() if line]


async def test_each_line_says_who_wrote_it_where_and_when(admin: Admin) -> None:
    first, second = await told(admin)
    text = admin.logs.machines["n1:7000"].written[0].text
    assert first == {
        "time": "2026-01-31T12:00:01.000Z",
        "level": "info",
        "process": "replica",
        "name": "mini-1",
        "node": "n1",
        "line": text,
        "note": "",
        "error": "",
    }
    assert (second["process"], second["node"]) == ("head", "")


async def test_what_is_asked_for_reaches_every_machine(admin: Admin) -> None:
    await told(admin, "?since=2026-01-31T12:00:01Z&request=abc&of=mini&tail=7")
    wanted = LogQuestion(NOON_US + 1_000_000, ("abc",), 7, of="mini")
    assert admin.logs.own.asked[-1] == admin.logs.machines["n1:7000"].asked[-1] == wanted


async def test_what_is_missing_stands_among_the_lines(admin: Admin) -> None:
    admin.logs.machines["n1:7000"].error = Unavailable("it is away")
    first, second = await told(admin)
    assert (first["error"], first["line"]) == ("node n1: it is away", "")
    assert second["process"] == "head"


@pytest.mark.parametrize("query", ["?tail=10001", "?since=yesterday", "?request=" + "x" * 513])
async def test_what_cannot_be_asked_for_is_refused(admin: Admin, query: str) -> None:
    assert_problem(await admin.client.get(f"{LOGS}{query}"), 422)


async def test_they_are_for_operators(admin: Admin) -> None:
    viewer = await admin.headers(Role.VIEWER)
    assert_problem(await admin.client.get(LOGS, headers=viewer), 403, "operator")
