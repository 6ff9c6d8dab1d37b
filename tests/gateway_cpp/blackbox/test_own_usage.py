"""What clients are told of their own usage of the day."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import tenant
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import PATIENCE, request

ACME = tenant(keys=["sesame", "barley"], limits={"tokens_per_minute": 900, "tokens_per_day": 100})
OTHER = tenant("other", keys=["rye"])
BEARER = "Authorization: Bearer sesame\r\n"
NOON, MIDNIGHT = 4_102_488_000, 4_102_531_200  # of a day that none of these tests will see


async def ask(system: System, headers: str = BEARER) -> dict[str, Any]:
    answer = await system.ask(request("GET", "/v1/usage", headers=headers))
    assert answer.status == 200
    found: dict[str, Any] = json.loads(answer.body)
    return found


def told() -> routes.GatewayReportReply:
    """What the head has added up until noon."""
    rows = [
        routes.UsageReport(tenant=of, key_id=key, requests=1, prompt_tokens=tokens)
        for of, key, tokens in (("acme", "k1", 30), ("acme", "k2", 10), ("other", "k1", 7))
    ]
    return routes.GatewayReportReply(
        as_of_ms=NOON * 1000, day_ends_at_ms=MIDNIGHT * 1000, whole=True, usage=rows
    )


async def has_heard(system: System) -> dict[str, Any]:
    """The page, once the gateway has heard what was used."""
    async with asyncio.timeout(PATIENCE):
        while (page := await ask(system))["as_of"] is None:
            pass
    return page


async def test_a_key_sees_its_own_usage_and_its_tenants_and_what_is_left(start: Start) -> None:
    system = await start(tenants=[ACME, OTHER], keys_required=True)
    assert (await ask(system))["as_of"] is None
    system.control.reply = told()
    page = await has_heard(system)
    assert (page["object"], page["as_of"]) == ("usage", NOON)
    assert (page["start_time"], page["end_time"]) == (MIDNIGHT - 86_400, MIDNIGHT)
    assert page["key"]["id"] == "k1"
    assert page["key"]["usage"] == {
        "num_model_requests": 1,
        "num_limited_requests": 0,
        "input_tokens": 30,
        "input_cached_tokens": 0,
        "output_tokens": 0,
        "cost_usd": 0.0,
    }
    assert (page["tenant"]["id"], page["tenant"]["usage"]["input_tokens"]) == ("acme", 40)
    assert page["tenant"]["limits"] == {
        "requests_per_minute": None,
        "tokens_per_minute": {"limit": 900, "remaining": 900},
        "max_streams": None,
        "tokens_per_day": {"limit": 100, "remaining": 60},
        "usd_per_day": None,
    }
    assert page["key"]["limits"] == {"tokens_per_day": None, "usd_per_day": None}
    other = await ask(system, "x-api-key: rye\r\n")
    assert other["tenant"]["usage"]["input_tokens"] == 7


async def test_it_is_told_while_there_is_no_head(start: Start) -> None:
    system = await start(tenants=[ACME])
    system.control.reply = told()
    before = await has_heard(system)
    await system.control.die()
    assert (await ask(system)) == before


async def test_nobody_is_told_without_a_key_where_keys_are_needed(start: Start) -> None:
    system = await start(tenants=[ACME], keys_required=True)
    for headers in ("", "Authorization: Bearer wrong\r\n"):
        answer = await system.ask(request("GET", "/v1/usage", headers=headers))
        assert (answer.status, answer.error["code"]) == (401, "invalid_api_key")


async def test_without_a_key_where_none_is_needed_it_tells_of_those_without(system: System) -> None:
    page = await ask(system, "")
    assert (page["key"]["id"], page["tenant"]["id"]) == (None, None)
