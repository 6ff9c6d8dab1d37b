"""Limits of a day hold at once, also for requests that come together and for several gateways."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime

from penstock.v1 import common_pb2 as common
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import deployment, tenant
from tests.fakes.fake_replica import FakeCall, hello
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.held import COST, Costly
from tests.gateway_cpp.blackbox.raw_http import PATIENCE, Response, chat
from tests.gateway_cpp.blackbox.raw_http import request as page_request

DAY = 86_400
NANO = 1_000_000_000
ACME = tenant(keys=["sesame"], limits={"tokens_per_day": 300})


def request(max_tokens: int = 180) -> bytes:
    """One that is reckoned at 200 tokens or a few more, before anything was learnt."""
    return chat("Authorization: Bearer sesame\r\n", max_tokens=max_tokens)


def now() -> float:
    """The gateway's own clock, in seconds since 1970."""
    return datetime.now(UTC).timestamp()


async def ask_many(system: System, costly: Costly, count: int = 8) -> list[Response]:
    """All at once; those that run are let go when the others have their answer."""
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(system.ask(request())) for _ in range(count)]
        async with asyncio.timeout(PATIENCE):
            while sum(task.done() for task in asked) < count - len(system.replicas[0].calls):
                await asyncio.sleep(0.01)
        costly.let_go(count)
    return [task.result() for task in asked]


async def test_eight_requests_at_once_do_not_use_more_than_the_day_has(start: Start) -> None:
    costly = Costly()
    system = await start(scripts=(costly,), tenants=[ACME])
    answers = await ask_many(system, costly)
    assert sorted(answer.status for answer in answers) == [200] + 7 * [429]
    for refused in (answer for answer in answers if answer.status == 429):
        assert refused.error["code"] == "rate_limit_exceeded"
        assert "300 tokens a day" in refused.error["message"]
        assert "reserved for requests under way" in refused.error["message"]
        assert (refused.headers["retry-after"], refused.headers["x-should-retry"]) == ("1", "true")
    last = await system.ask(request())
    assert (last.status, last.error["code"]) == (429, "insufficient_quota")
    assert "100 of 300 tokens a day are left" in last.error["message"]
    assert last.headers["x-should-retry"] == "false"
    left = DAY - now() % DAY
    assert abs(int(last.headers["retry-after"]) - left) < PATIENCE
    assert abs(int(last.headers["retry-after-ms"]) / 1000 - left) < PATIENCE


async def test_what_is_left_goes_to_a_request_that_fits(start: Start) -> None:
    costly = Costly()
    system = await start(scripts=(costly,), tenants=[ACME])
    await ask_many(system, costly, 1)
    assert (await system.ask(request())).status == 429
    system.replicas[0].script = hello
    assert (await system.ask(request(max_tokens=10))).status == 200


def told(used: int, reserved: int) -> routes.GatewayReportReply:
    """So much was used today, and is reserved by other gateways."""
    return routes.GatewayReportReply(
        as_of_ms=int(now() * 1000),
        day_ends_at_ms=int(now() // DAY + 1) * DAY * 1000,
        whole=True,
        usage=[routes.UsageReport(tenant="acme", key_id="k1", prompt_tokens=used)],
        holds=[routes.DayHold(tenant="acme", reserved_tokens=reserved)],
    )


async def test_what_others_used_and_reserved_counts_as_soon_as_the_head_tells_it(
    start: Start,
) -> None:
    acme = tenant(keys=["sesame"], limits={"tokens_per_day": 3_000})
    system = await start(tenants=[acme])
    system.control.reply = told(1_000, 1_900)
    await answers_with(system, "rate_limit_exceeded")
    system.control.reply = told(1_000, 0)
    await answers_with(system, "")
    system.control.reply = told(2_999, 0)
    await answers_with(system, "insufficient_quota")


async def answers_with(system: System, code: str) -> None:
    """Waits until requests of 150 tokens are answered so; empty: well."""
    async with asyncio.timeout(PATIENCE):
        while True:
            answer = await system.ask(request(max_tokens=130))
            if code == ("" if answer.status == 200 else answer.error["code"]):
                return
            await asyncio.sleep(0.05)


async def test_the_head_is_told_what_is_reserved_and_what_was_used(start: Start) -> None:
    costly = Costly()
    system = await start(scripts=(costly,), tenants=[ACME])
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(system.ask(request()))
        report = await system.reports(lambda report: bool(report.holds), "a reservation")
        (held,) = report.holds
        assert (held.tenant, held.key_id, held.used_tokens) == ("acme", "", 0)
        assert 200 <= held.reserved_tokens <= 220
        costly.let_go()
    report = await system.reports(
        lambda report: any(hold.used_tokens for hold in report.holds), "what it cost"
    )
    (held,) = report.holds
    assert (held.used_tokens, held.reserved_tokens) == (COST, 0)


PRICED = deployment(prices=routes.Prices(input=500_000, output=1_000_000, cached=100_000))
"""A dollar for a token of an answer, half of one for a token of a prompt."""


async def test_dollars_of_a_model_of_ones_own_are_reserved_and_settled(start: Start) -> None:
    costly = Costly()
    poor = tenant(keys=["sesame"], limits={"nanousd_per_day": 300 * NANO})
    system = await start(scripts=(costly,), tenants=[poor], deployment=PRICED)
    answers = await ask_many(system, costly, 4)
    assert sorted(answer.status for answer in answers) == [200] + 3 * [429]
    last = await system.ask(request())
    assert (last.status, last.error["code"]) == (429, "insufficient_quota")
    assert (
        "110.0 of $300.0 a day are left, and this request is reckoned at $"
        in (last.error["message"])
    )
    page = json.loads((await system.ask(own_usage())).body)
    assert page["tenant"]["limits"]["usd_per_day"] == {"limit": 300.0, "remaining": 110.0}
    report = await system.reports(
        lambda report: any(row.cost_nanousd for row in report.usage), "what it cost"
    )
    assert [row.cost_nanousd for row in report.usage if row.requests] == [190 * NANO]


async def test_a_provider_reckons_itself_by_the_prices_that_calls_bring(start: Start) -> None:
    async def dear(call: FakeCall) -> None:
        call.usage = common.Usage(prompt_tokens=3, completion_tokens=2, cost_nanousd=7)
        await hello(call)

    managed = deployment(managed=True, prices=PRICED.prices)
    poor = tenant(keys=["sesame"], limits={"nanousd_per_day": 100 * NANO})
    system = await start(scripts=(dear,), tenants=[poor], deployment=managed)
    assert (await system.ask(request())).status == 429
    assert (await system.ask(request(max_tokens=50))).status == 200
    (call,) = system.replicas[0].calls
    asked = call.request
    assert (asked.input_price, asked.output_price) == (500_000 * NANO, 1_000_000 * NANO)
    assert asked.cached_price == 100_000 * NANO
    report = await system.reports(
        lambda report: any(row.cost_nanousd for row in report.usage), "what it cost"
    )
    assert [row.cost_nanousd for row in report.usage if row.requests] == [7]


async def test_a_key_is_held_to_limits_of_its_own(start: Start) -> None:
    acme = tenant(keys=["sesame", "barley"])
    acme.keys[0].tokens_per_day = 100
    system = await start(tenants=[acme])
    refused = await system.ask(request())
    assert (refused.status, refused.error["code"]) == (429, "insufficient_quota")
    assert "100 of 100 tokens a day are left for this key" in refused.error["message"]
    other = chat("Authorization: Bearer barley\r\n", max_tokens=180)
    assert (await system.ask(other)).status == 200
    page = json.loads((await system.ask(own_usage())).body)
    assert page["key"]["limits"]["tokens_per_day"] == {"limit": 100, "remaining": 100}


UNLIMITED = chat("Authorization: Bearer sesame\r\n")


def completion(**fields: object) -> bytes:
    """A request for completions of at most 20 tokens each."""
    body = json.dumps({"model": "mini", "max_tokens": 20} | fields).encode()
    return page_request(
        path="/v1/completions", body=body, headers="Authorization: Bearer sesame\r\n"
    )


async def test_answers_without_a_limit_may_together_have_no_more_than_is_left(start: Start) -> None:
    costly = Costly()
    rich = tenant(keys=["sesame"], limits={"tokens_per_day": 6_000})
    system = await start(scripts=(costly,), tenants=[rich])
    calls = system.replicas[0].calls
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(system.ask(UNLIMITED)) for _ in range(30)]
        await until(
            lambda: sum(task.done() for task in asked) + len(calls) >= 30, "the rest is refused"
        )
        costly.let_go(30)
    assert len(calls) > 1
    most = [call.request.max_completion_tokens for call in calls]
    assert all(most), "each is told what its answer may have"
    assert sum(most) <= 6_000
    refused = [task.result() for task in asked if task.result().status != 200]
    assert {answer.error["code"] for answer in refused} == {"rate_limit_exceeded"}


async def test_long_answers_of_others_keep_nobody_from_a_small_quota(start: Start) -> None:
    async def long_answer(call: FakeCall) -> None:
        call.usage = common.Usage(prompt_tokens=20, completion_tokens=4_000)
        await hello(call)

    small = tenant("small", keys=["barley"], limits={"tokens_per_day": 1_000})
    system = await start(scripts=(long_answer,), tenants=[tenant(keys=["sesame"]), small])
    for _ in range(20):
        assert (await system.ask(UNLIMITED)).status == 200
    asked = chat("Authorization: Bearer barley\r\n")
    assert (await system.ask(asked)).status == 200
    assert 500 < system.replicas[0].calls[-1].request.max_completion_tokens < 1_000


async def test_an_answer_that_may_take_more_than_is_left_is_refused(start: Start) -> None:
    system = await start(tenants=[ACME])
    for _ in range(3):
        assert (await system.ask(request(max_tokens=200))).status == 200  # of two tokens each
    refused = await system.ask(request(max_tokens=4_000))
    assert (refused.status, refused.error["code"]) == (429, "insufficient_quota")


async def test_each_prompt_of_a_list_has_answers_of_its_own(start: Start) -> None:
    system = await start(tenants=[ACME])
    refused = await system.ask(completion(prompt=["Hi"] * 16))
    assert (refused.status, refused.error["code"]) == (429, "insufficient_quota")
    assert (await system.ask(completion(prompt=[1, 2, 3]))).status == 200


def own_usage() -> bytes:
    """The page that tells the key what it used."""
    return page_request("GET", "/v1/usage", headers="Authorization: Bearer sesame\r\n")
