"""Budgets are counted to the token and the billionth, kept over kills, and told in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.tenancy.shares import ShareManager
from penstock.control.managers.tenancy.spend import SpendManager
from penstock.control.managers.tenancy.usage import HURRIED, UsageManager
from penstock.control.state.rollout.deployment import DeploymentSpec
from penstock.control.state.routing.snapshot import DeploymentRoute, routes_of
from penstock.control.state.tenancy.spend import Budgets, Spend
from penstock.control.state.tenancy.usage import Counts, UsageKey, added
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore, plus
from tests.fakes.control_values import NOON, deployment, spec
from tests.fakes.counting_gateway import CountingGateway
from tests.fakes.waiting import until

TODAY = NOON.date()
ACME, NOBODY = UsageKey("acme", "key_1", "mini", ""), UsageKey("", "", "mini", "pirate@1")
MIDNIGHT = int((NOON + timedelta(hours=12)).timestamp() * 1000)


class Head:
    """The parts of a head that look after budgets, over a store that outlives them."""

    def __init__(self, store: MemoryStore | None = None, clock: ManualClock | None = None) -> None:
        self.store = store or MemoryStore()
        self.clock = clock or ManualClock()
        self.cluster = ClusterStore(self.store, self.clock)
        self.spend = SpendManager(self.cluster, self.store, self.clock)
        shares = ShareManager(self.cluster, self.clock)
        self.usage = UsageManager(self.cluster, self.store, shares, self.spend, self.clock)

    async def has(self, budgets: Budgets) -> None:
        await self.cluster.observe(
            lambda view: view.with_deployment(deployment(budgeted(budgets))), "test"
        )

    async def killed(self) -> Head:
        """The head that comes after this one, before it has heard from anybody."""
        new = Head(self.store, self.clock)
        await new.cluster.restore()
        await new.usage.judge()
        return new

    async def counted(self) -> None:
        await self.usage.flush()
        await self.usage.judge()

    @property
    def route(self) -> DeploymentRoute:
        return routes_of(self.cluster.view()).deployments[0]

    @property
    def told(self) -> tuple[bool, int]:
        return self.route.budget_used_up, self.route.budget_resets_at_ms


def budgeted(budgets: Budgets) -> DeploymentSpec:
    return replace(spec(), budgets=budgets)


@pytest.fixture
async def running() -> AsyncIterator[Head]:
    """A head whose loop runs."""
    head = Head()
    async with asyncio.TaskGroup() as tasks:
        loop = tasks.create_task(head.usage.run())
        await until(lambda: head.clock.sleepers > 0, "it waits for the next second")
        yield head
        loop.cancel()


async def test_money_is_counted_over_all_keys_and_gateways_and_begins_anew_at_midnight() -> None:
    head = Head()
    await head.has(Budgets(usd_per_day=1))
    await head.counted()
    assert head.told == (False, MIDNIGHT)
    head.usage.take("gw-1", "i1", [(ACME, Counts(1, cost_nanousd=600_000_000))])
    await head.counted()
    assert head.told == (False, MIDNIGHT)
    head.usage.take("gw-2", "i2", [(NOBODY, Counts(1, cost_nanousd=400_000_000))])
    await head.counted()
    assert head.told == (True, MIDNIGHT)
    assert head.spend.today("mini") == Spend(2, 0, 0, 10**9)
    head.clock.advance(timedelta(hours=12))
    await head.counted()
    assert head.told == (False, MIDNIGHT + 86_400_000)


async def test_tokens_are_counted_by_the_same_rules() -> None:
    head = Head()
    await head.has(Budgets(tokens_per_day=100))
    for tokens, used_up in ((49, False), (50, True)):
        head.usage.take("gw-1", "i1", [(ACME, Counts(1, 0, tokens, tokens))])
        await head.counted()
        assert head.told[0] == used_up


async def test_a_budget_that_is_used_up_stays_so_when_the_head_is_killed() -> None:
    head = Head()
    await head.cluster.restore()
    await head.has(Budgets(tokens_per_day=10))
    head.usage.take("gw-1", "i1", [(ACME, Counts(1, 0, 5, 5))])
    await head.counted()
    head = await head.killed()
    assert head.told == (True, MIDNIGHT)
    head.usage.take("gw-1", "i1", [(ACME, Counts(1, 0, 5, 5))])
    await head.counted()
    assert head.spend.today("mini").tokens == 10


async def test_a_larger_budget_lets_it_go_on_and_none_does_so_for_good() -> None:
    head = Head()
    await head.has(Budgets(tokens_per_day=10))
    head.usage.take("gw-1", "i1", [(ACME, Counts(1, 0, 5, 5))])
    await head.counted()
    assert head.told[0]
    await head.has(Budgets(tokens_per_day=11))
    await head.counted()
    assert head.told == (False, MIDNIGHT)
    await head.has(Budgets())
    await head.counted()
    assert head.told == (False, 0)


async def test_a_store_that_cannot_be_read_frees_nobody() -> None:
    head = Head()
    await head.has(Budgets(tokens_per_day=10))
    head.usage.take("gw-1", "i1", [(ACME, Counts(1, 0, 5, 5))])
    await head.counted()
    head.store.unreadable = True
    await head.counted()
    assert head.told[0]


async def test_a_store_that_cannot_be_read_frees_everybody_at_midnight() -> None:
    head = Head()
    await head.has(Budgets(tokens_per_day=10))
    head.usage.take("gw-1", "i1", [(ACME, Counts(1, 0, 5, 5))])
    await head.counted()
    head.store.unreadable = True
    head.clock.advance(timedelta(hours=12))
    await head.counted()
    assert head.told == (False, MIDNIGHT + 86_400_000)
    assert head.spend.today("mini") == Spend()


async def test_what_is_used_up_is_told_a_quarter_of_a_second_after_it_was_reported(
    running: Head,
) -> None:
    await running.has(Budgets(tokens_per_day=10))
    running.clock.advance(timedelta(seconds=1))  # that began when there was no budget
    await until(lambda: running.clock.sleepers > 0, "it waits again")
    running.usage.take("gw-1", "i1", [(ACME, Counts(1, 0, 5, 5))])
    running.clock.advance(HURRIED)
    await until(lambda: running.told[0], "gateways are told")


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_nothing_is_spent_twice_though_reports_repeat_get_lost_and_come_out_of_order(
    random: Random,
) -> None:
    asyncio.run(_history(random))


async def _history(random: Random) -> None:
    """Gateways restart, heads are killed, the store fails; the budget is one token above what is
    spent, so that a token counted twice would use it up."""
    head = Head()
    await head.cluster.restore()
    gateways, spent, late = [CountingGateway("gw-1"), CountingGateway("gw-2")], Counts(), []
    for _ in range(30):
        gateway, cost = random.choice(gateways), _some(random)
        gateway.works(random.choice((ACME, NOBODY)), cost)
        spent = added(spent, cost)
        late.append(gateway.report())
        match random.choice(["lost", "lost", "told", "repeated", "ends", "head", "full"]):
            case "told":
                head.usage.take(*late.pop())
            case "repeated":
                for each in random.choices(late, k=4):
                    head.usage.take(*each)
            case "ends":
                head.usage.take(*gateway.report())
                gateway.restarts()
            case "head":
                await head.usage.flush()
                head = await head.killed()
            case "full":
                head.store.failing = True
                await head.usage.flush()
                head.store.failing = False
    random.shuffle(late)
    for each in [*late, *(gateway.report() for gateway in gateways), *late]:
        head.usage.take(*each)
    for more, used_up in ((1, False), (0, True)):
        await head.has(Budgets(tokens_per_day=spent.tokens + more))
        await head.counted()
        assert (head.spend.today("mini"), head.told[0]) == (plus(Spend(), spent), used_up)


def _some(random: Random) -> Counts:
    """A request of at least one token."""
    return Counts(1, 0, random.randint(1, 50), *(random.randint(0, 50) for _ in range(3)))


async def test_a_day_of_ten_million_tokens_is_counted_to_the_last_one() -> None:
    """Two gateways, 20,000 requests of 500 tokens from midnight to midnight, reports each second of
    work, a restart of each gateway and of the head in between; each request costs 0.000150001 $."""
    head = Head()
    await head.cluster.restore()
    await head.has(Budgets(usd_per_day=3.00002, tokens_per_day=10_000_000))
    head.clock.advance(timedelta(hours=12))
    begun = head.clock.now()
    one = Counts(1, 0, 400, 100, 0, 150_001)
    counts, lives = [Counts(), Counts()], [0, 0]
    used_up_after = 0
    for n in range(20_000):
        counts[n % 2] = added(counts[n % 2], one)
        head.clock.advance(timedelta(seconds=4))
        if n % 50 in (48, 49) or n >= 19_998:
            head.usage.take(f"gw-{n % 2}", f"i{n % 2}.{lives[n % 2]}", [(ACME, counts[n % 2])])
            await head.counted()
        if n in (4_999, 9_998):  # right after its last report
            lives[n % 2], counts[n % 2] = lives[n % 2] + 1, Counts()
        if n == 12_000:
            head = await head.killed()
        if head.told[0] and not used_up_after:
            used_up_after = n + 1
    assert head.clock.now() - begun < timedelta(days=1)
    assert used_up_after == 20_000
    day = begun.date()
    (row,) = await head.store.spent(day, day)
    assert row.spend == Spend(20_000, 8_000_000, 2_000_000, 20_000 * 150_001)
