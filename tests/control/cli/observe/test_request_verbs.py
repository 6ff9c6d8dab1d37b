"""`penstock requests` and `penstock explain`, against a real admin API and a gateway beside it."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing

from penstock.control.admin.observe.request_models import LeftOutModel, RequestModel
from penstock.control.outside.admin_client import AdminClient, token_in
from penstock.control.secrets_files import write_secret
from penstock.control.state.cluster import Gateway, GatewayState
from tests.control.cli.conftest import AskedHead
from tests.fakes.control_values import NOON
from tests.fakes.explaining_gateway import record
from tests.fakes.waiting import until

NOON_US = int(NOON.timestamp()) * 1_000_000


def ended(head: AskedHead) -> None:
    """Two requests have."""
    refused = record(
        "req_2", NOON_US + 1_000, 429, outcome="rejected", drop_reason="queue_full", model="mini",
        message="every replica is busy\x1b[2J", client_request_id="mine",
    )  # fmt: skip
    refused.stays.add(deployment="mini")
    head.admin.gateway.records += [record("req_1", NOON_US, tenant="acme"), refused]


def test_requests_are_shown_a_line_each_the_newest_last_and_as_json(
    asked_head: AskedHead,
) -> None:
    ended(asked_head)
    told = asked_head.run("requests")
    assert (told.exit_code, told.stderr) == (0, "")
    first, second = (line.split() for line in told.stdout.splitlines())
    assert first[1:] == ["12:00:00.000", "200", "succeeded", "1.5", "ms", "req_1", "-", "acme", "-"]
    assert second[1:7] == ["12:00:00.001", "429", "rejected", "1.5", "ms", "req_2"]
    assert second[-1] == "queue_full"
    asked = ("--status", "4xx", "--since", "1h", "--last", "7", "--json")
    page = json.loads(asked_head.run("requests", *asked).stdout)
    assert [each["request_id"] for each in page["requests"]] == ["req_2"]
    assert page["gateways"][0]["answered"]
    assert asked_head.admin.gateway.asked[-1].list.limit == 100


def test_what_cannot_be_asked_is_one_line(asked_head: AskedHead) -> None:
    for asked in (("--since", "noon"), ("--status", "6xx")):
        told = asked_head.run("requests", *asked)
        assert told.exit_code == 1
        assert told.stderr.startswith("penstock requests: error: ")
        assert asked[0].removeprefix("--") in told.stderr


def test_who_did_not_answer_is_said_and_the_exit_code_tells(asked_head: AskedHead) -> None:
    ended(asked_head)
    cluster = asked_head.admin.cluster
    cluster.replace(cluster.view().with_gateway(Gateway("gw-9", GatewayState.SILENT)))
    told = asked_head.run("requests")
    assert (told.exit_code, told.stderr) == (1, "without what gateway gw-9 keeps: it is silent\n")
    assert len(told.stdout.splitlines()) == 2
    told = asked_head.run("explain", "req_1")
    assert (told.exit_code, "gw-9" in told.stderr) == (0, True)


def test_a_request_is_explained_in_words_and_as_json(asked_head: AskedHead) -> None:
    ended(asked_head)
    told = asked_head.run("explain", "mine")
    assert told.exit_code == 0, told.stderr
    lines = [" ".join(line.split()) for line in told.stdout.splitlines()]
    assert lines[0] == "req_2 was refused with 429 (queue_full), after 1.5 ms"
    assert "its client was told every replica is busy\ufffd[2J" in lines
    assert "kept by gateway gw-1" in lines
    assert "0.000 ms it has been read" in lines
    assert lines[-1] == "1.500 ms it ends: rejected, queue_full"
    found = json.loads(asked_head.run("explain", "req_2", "--json").stdout)
    assert found["record"]["drop_reason"] == "queue_full"


def test_an_id_that_the_api_gives_all_requests_by_is_said_to_be_none(
    asked_head: AskedHead,
) -> None:
    told = asked_head.run("explain", "tail")
    assert (told.exit_code, told.stdout) == (1, "")
    assert "ID is tail, by which the admin API gives all requests" in told.stderr


def test_one_that_nobody_keeps_is_told_so(asked_head: AskedHead) -> None:
    told = asked_head.run("explain", "req_9")
    assert (told.exit_code, told.stdout) == (1, "")
    assert told.stderr == (
        "penstock explain: error: no gateway keeps a request 'req_9': gw-1 keeps none\n"
    )


def test_whoever_follows_has_who_tells_and_then_what_ends(asked_head: AskedHead) -> None:
    token = token_in(asked_head.data_dir / "admin.token")
    gateway = asked_head.admin.gateway

    async def told() -> tuple[object, object, object]:
        async with (
            AdminClient(f"http://{asked_head.address}", token) as admin,
            aclosing(admin.follow_requests({"tenant": "acme"})) as found,
        ):
            first = await anext(found)
            await until(lambda: gateway.tails, "the tail")
            await asyncio.to_thread(gateway.end_elsewhere, record("req_3"), left_out=2)
            return first, await anext(found), await anext(found)

    gateways, request, gap = asyncio.run(told())
    assert isinstance(gateways, list)
    assert isinstance(request, RequestModel)
    assert request.request_id == "req_3"
    assert gap == LeftOutModel(left_out=2)


def test_following_shows_what_is_kept_then_what_ends_and_asks_again_when_the_head_has_gone(
    asked_head: AskedHead,
) -> None:
    ended(asked_head)
    gateway, explain = asked_head.admin.gateway, asked_head.admin.services.explain
    with ThreadPoolExecutor() as pool:
        running = pool.submit(asked_head.run, "requests", "-f", "--last", "1")
        asyncio.run(until(lambda: any(each.list.limit for each in gateway.asked), "the list"))
        gateway.end_elsewhere(record("req_3", NOON_US), left_out=2)
        write_secret(asked_head.data_dir / "admin.token", "pst_other")
        gateway.loop.call_soon_threadsafe(explain.close)
        told = running.result()
    assert [line.split()[6] for line in told.stdout.splitlines()] == ["req_2", "req_3"]
    left_out, error = told.stderr.splitlines()
    assert left_out == "2 that ended here are left out: they were too many"
    assert "does not know the token" in error
