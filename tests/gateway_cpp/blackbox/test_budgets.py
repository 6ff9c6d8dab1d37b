"""A deployment's budgets of a day hold at once, by whatever way requests come to it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import deployment, route
from tests.fakes.fake_replica import FakeCall, Script, hang, hello, refuse
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.held import COST, Costly
from tests.gateway_cpp.blackbox.raw_http import PATIENCE, Response, chat

DAY = 86_400
NANO = 1_000_000_000
AT_ONCE = 8
REQUEST = chat(max_tokens=180)  # reckoned at 200 tokens or a few more, before anything was learnt


def cloud(
    budget_tokens: int = 0, budget_usd: int = 0, *, managed: bool = True
) -> routes.DeploymentRoute:
    """A dollar for a token of an answer, half of one for a token of a prompt."""
    prices = routes.Prices(input=500_000, output=1_000_000, cached=100_000)
    made = deployment("cloud", managed=managed, prices=prices)
    made.budget_tokens_per_day, made.budget_nanousd_per_day = budget_tokens, budget_usd * NANO
    return made


async def with_cloud(
    start: Start, script: Script, budgeted: routes.DeploymentRoute, mini: routes.DeploymentRoute
) -> System:
    """`mini` on the first replica, unless it has a ladder; `cloud` on the second one."""
    system = await start(scripts=(hello, script))
    first, second = system.replicas
    routed = [route(second, of="cloud")] + ([] if mini.ladders else [route(first)])
    await system.has_routes(await system.control.publish([mini, budgeted], routed))
    return system


async def ask_at_once(system: System, costly: Costly, data: bytes = REQUEST) -> list[Response]:
    """Those that are with `cloud` are let go when the others have their answer."""
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(system.ask(data)) for _ in range(AT_ONCE)]
        with_it = system.replicas[1].calls
        await until(
            lambda: sum(task.done() for task in asked) + len(with_it) >= AT_ONCE,
            "the others have their answer",
        )
        costly.let_go(AT_ONCE)
    return [task.result() for task in asked]


def backends(answers: list[Response]) -> list[str]:
    """Who answered."""
    return sorted(answer.headers["x-penstock-backend"] for answer in answers)


@pytest.mark.parametrize(
    ("budgeted", "left"),
    [
        (cloud(budget_tokens=300), "100 of 300 tokens a day are left"),
        (cloud(budget_tokens=300, managed=False), "100 of 300 tokens a day are left"),
        (cloud(budget_usd=300, managed=False), "110.0 of $300.0 a day are left"),
    ],
    ids=["a provider's tokens", "an own model's tokens", "dollars"],
)
async def test_of_eight_requests_at_once_under_a_budget_for_one_answer_one_is_let_in(
    start: Start, budgeted: routes.DeploymentRoute, left: str
) -> None:
    costly = Costly()
    system = await with_cloud(start, costly, budgeted, deployment())
    answers = await ask_at_once(system, costly, chat(model="cloud", max_tokens=180))
    assert sorted(answer.status for answer in answers) == [200] + (AT_ONCE - 1) * [503]
    for refused in (answer for answer in answers if answer.status == 503):
        assert refused.headers["x-penstock-drop-reason"] == "budget"
        assert "reserved for requests under way" in refused.error["message"]
        assert (refused.headers["retry-after"], refused.headers["x-should-retry"]) == ("1", "true")
    last = await system.ask(chat(model="cloud", max_tokens=180))
    assert (last.status, last.error["code"]) == (503, "budget")
    assert left in last.error["message"]
    assert last.headers["x-should-retry"] == "false"


@pytest.mark.parametrize(("budget", "told"), [(1_000_000, 0), (300, 300)])
async def test_a_provider_is_told_a_limit_only_where_the_budget_nears_its_end(
    start: Start, budget: int, told: int
) -> None:
    system = await with_cloud(start, hello, cloud(budget_tokens=budget), deployment())
    assert (await system.ask(chat(model="cloud"))).status == 200
    (call,) = system.replicas[1].calls
    assert told - 30 <= call.request.max_completion_tokens <= told


LADDER = deployment(ladders={"": ["fallback:cloud"]})
CANARY = deployment(canary={"cloud": 1000})


async def test_a_rung_takes_what_its_budget_has_left(start: Start) -> None:
    costly = Costly()
    system = await with_cloud(start, costly, cloud(budget_tokens=300), LADDER)
    answers = await ask_at_once(system, costly)
    assert sorted(answer.status for answer in answers) == [200] + (AT_ONCE - 1) * [503]
    refused = next(answer for answer in answers if answer.status == 503)
    assert refused.headers["x-penstock-drop-reason"] == "no_ready_replica"
    assert "fallback:cloud=budget" in refused.error["message"]


async def test_what_the_budget_of_a_canary_has_no_room_for_stays_where_it_was_asked(
    start: Start,
) -> None:
    costly = Costly()
    system = await with_cloud(start, costly, cloud(budget_tokens=300), CANARY)
    answers = await ask_at_once(system, costly)
    assert {answer.status for answer in answers} == {200}
    assert backends(answers) == ["cloud"] + (AT_ONCE - 1) * ["mini"]


async def test_a_retry_at_another_replica_has_what_was_reserved_for_the_first_try(
    start: Start,
) -> None:
    system = await start(scripts=(refuse(503, "overloaded", retry=True), hello))
    budgeted = cloud(budget_tokens=300)
    routed = [route(replica, of="cloud") for replica in system.replicas]
    await system.has_routes(await system.control.publish([budgeted], routed))
    sick, well = system.replicas
    while not sick.calls:
        answer = await system.ask(chat(model="cloud", max_tokens=180))
        assert answer.status == 200
    assert well.calls


async def test_what_could_not_be_answered_leaves_its_part_of_the_budget_to_others(
    start: Start,
) -> None:
    async def fails_once(call: FakeCall) -> None:
        await (hello if len(system.replicas[1].calls) > 1 else refuse(400, "not_here"))(call)

    system = await with_cloud(start, fails_once, cloud(budget_tokens=300), CANARY)
    first, second = system.replicas
    first.script = hang
    async with system.client() as client:
        await client.send(REQUEST)
        await until(lambda: first.calls, "the one that was asked has it")
        answer = await system.ask(chat(model="cloud", max_tokens=180))
    assert (answer.status, len(second.calls)) == (200, 2)


def now() -> float:
    """The gateway's own clock, in seconds since 1970."""
    return datetime.now(UTC).timestamp()


def told(used: int, reserved: int) -> routes.GatewayReportReply:
    """So much was used today, and is reserved by other gateways."""
    return routes.GatewayReportReply(
        as_of_ms=int(now() * 1000),
        day_ends_at_ms=int(now() // DAY + 1) * DAY * 1000,
        whole=True,
        spent=[routes.UsageReport(deployment="cloud", prompt_tokens=used)],
        holds=[routes.DayHold(deployment="cloud", reserved_tokens=reserved)],
    )


@pytest.mark.parametrize(
    ("used", "reserved", "retries"), [(1_000, 1_900, "true"), (2_999, 0, "false"), (1_000, 0, None)]
)
async def test_what_other_gateways_used_and_reserved_counts(
    start: Start, used: int, reserved: int, retries: str | None
) -> None:
    system = await with_cloud(start, hello, cloud(budget_tokens=3_000), deployment())
    system.control.reply = told(used, reserved)
    async with asyncio.timeout(PATIENCE):
        while True:  # until it is told
            answer = await system.ask(chat(model="cloud", max_tokens=130))
            if answer.headers.get("x-should-retry") == retries:
                return
            await asyncio.sleep(0.05)


async def test_the_head_is_told_what_is_reserved_and_used_of_budgets(start: Start) -> None:
    costly = Costly()
    system = await with_cloud(start, costly, cloud(budget_tokens=300), deployment())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(system.ask(chat(model="cloud", max_tokens=180)))
        report = await system.reports(lambda report: bool(report.holds), "a reservation")
        (held,) = report.holds
        assert (held.deployment, held.tenant, held.key_id) == ("cloud", "", "")
        assert (held.used_tokens, 200 <= held.reserved_tokens <= 220) == (0, True)
        costly.let_go()
    report = await system.reports(
        lambda report: any(hold.used_tokens for hold in report.holds), "what it cost"
    )
    (held,) = report.holds
    assert (held.used_tokens, held.reserved_tokens) == (COST, 0)
