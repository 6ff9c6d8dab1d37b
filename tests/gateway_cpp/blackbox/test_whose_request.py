"""Whose request it was: what the log and the metrics say of each."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.fake_control import tenant
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.held import Held, busy, narrow
from tests.gateway_cpp.blackbox.raw_http import Response, chat
from tests.gateway_cpp.blackbox.test_metrics_page import has, read

ACME = tenant(keys=["first", "second"])
BEARER = "Authorization: Bearer second\r\n"


async def line_of(system: System, answer: Response) -> dict[str, Any]:
    """What the log says of the request that was answered so."""
    ours = answer.headers["x-request-id"]
    line = await until(
        lambda: system.gateway.find_log("request settled", request_id=ours), "it is logged"
    )
    assert line
    return line


async def test_the_log_says_whose_request_it_was_and_from_where(start: Start) -> None:
    system = await start(tenants=[ACME], keys_required=True)
    line = await line_of(system, await system.ask(chat(BEARER)))
    told = (line["tenant"], line["key_id"], line["client"], line["drop_reason"])
    assert told == ("acme", "k2", "127.0.0.1", "")


async def test_addresses_of_clients_are_left_out_where_they_are_to_be(start: Start) -> None:
    system = await start("--no-client-addresses", tenants=[ACME])
    line = await line_of(system, await system.ask(chat(BEARER)))
    assert (line["tenant"], line["client"]) == ("acme", "")


async def test_a_request_without_a_key_is_nobodys(system: System) -> None:
    line = await line_of(system, await system.ask(chat()))
    assert (line["tenant"], line["key_id"]) == ("", "")


@pytest.mark.parametrize("limit", ["max_streams", "queue"])
async def test_a_refusal_is_logged_with_the_reason_that_its_client_was_told(
    start: Start, limit: str
) -> None:
    limited = tenant(keys=["second"], limits={"max_streams": 1} if limit == "max_streams" else {})
    held = Held()
    system = await start(deployment=narrow(max_queued=0), scripts=(held,), tenants=[limited])
    async with busy(system, chat(BEARER)):
        answer = await system.ask(chat(BEARER))
        held.let_go()
    assert answer.status == 429
    line = await line_of(system, answer)
    assert line["drop_reason"] == answer.headers["x-penstock-drop-reason"]
    assert line["drop_reason"] in ("rate_limited", "queue_full")


async def test_metrics_tell_tenants_apart(start: Start) -> None:
    system = await start(tenants=[ACME])
    for headers in (BEARER, BEARER, ""):
        assert (await system.ask(chat(headers))).status == 200
    assert (await system.ask(chat(BEARER, stream="maybe"))).status == 400
    await has(system, 'tenant_requests_total{outcome="invalid",tenant="acme"}', 1)
    await has(system, 'tenant_completion_tokens_total{tenant="acme"}', 4)
    page = await read(system)
    assert page['tenant_requests_total{outcome="succeeded",tenant="acme"}'] == 2
    assert page['tenant_requests_total{outcome="succeeded",tenant="-"}'] == 1
    assert page['tenant_cost_usd_total{tenant="acme"}'] == 0
