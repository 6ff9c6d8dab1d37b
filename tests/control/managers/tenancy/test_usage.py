"""What gateways count comes to the store to the token, whatever happens on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.tenancy.shares import ShareManager
from penstock.control.managers.tenancy.spend import SpendManager
from penstock.control.managers.tenancy.tenants import TenantManager
from penstock.control.managers.tenancy.usage import UsageManager
from penstock.control.managers.write import Write
from penstock.control.state.cluster import ClusterView, Gateway, GatewayReport
from penstock.control.state.cluster import GatewayState as State
from penstock.control.state.tenancy.dividing import WHOLE
from penstock.control.state.tenancy.shares import share_of
from penstock.control.state.tenancy.tenancy import tenant_routes
from penstock.control.state.tenancy.tenants import TenantSpec
from penstock.control.state.tenancy.usage import Counts, Holder, Reading, UsageKey, added, total
from penstock.control.store.store import Contents
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import NOON, SECOND
from tests.fakes.counting_gateway import CountingGateway

TODAY = NOON.date()
ACME = UsageKey("acme", "key_1", "mini", "")
KEYS = (ACME, UsageKey("acme", "key_2", "mini", "pirate@1"), UsageKey("", "", "mini", ""))
ONE = Counts(1, 0, 10, 5, 2)


class CountingStore(MemoryStore):
    """Counts how often usage is written."""

    def __init__(self, contents: Contents | None = None) -> None:
        super().__init__(contents)
        self.writes = 0

    async def record(self, readings: Sequence[Reading]) -> None:
        self.writes += 1
        await super().record(readings)


class HangingStore:
    """Hangs once, before or after it has written."""

    def __init__(self, store: MemoryStore, writes_first: bool) -> None:
        self.hangs = asyncio.Event()
        self.hung = True
        self.usage, self.sums_of, self.spent = store.usage, store.sums_of, store.spent
        self._record, self._writes_first = store.record, writes_first

    async def record(self, readings: Sequence[Reading]) -> None:
        if not self.hung:
            await self._record(readings)
            return
        if self._writes_first:
            await self._record(readings)
        self.hangs.set()
        await asyncio.Event().wait()


class Head:
    """The parts of a head that look after usage, over a store that outlives them."""

    def __init__(self, store: MemoryStore | None = None, clock: ManualClock | None = None) -> None:
        self.store = store or CountingStore()
        self.clock = clock or ManualClock()
        self.cluster = ClusterStore(self.store, self.clock)
        self.shares = ShareManager(self.cluster, self.clock)
        self.spend = SpendManager(self.cluster, self.store, self.clock)
        self.usage = UsageManager(self.cluster, self.store, self.shares, self.spend, self.clock)
        self.tenants = TenantManager(self.cluster, self.clock)

    async def stored(self) -> dict[UsageKey, Counts]:
        found: dict[UsageKey, Counts] = {}
        for row in await self.store.usage(date.min, date.max):
            found[row.of] = added(row.counts, found.get(row.of, Counts()))
        return found

    async def gateways(self, *names: str, draining: str = "") -> None:
        """These report now, and no others."""

        def step(view: ClusterView) -> ClusterView:
            gateways = {
                name: Gateway(
                    name,
                    State.REMOTE,
                    report=GatewayReport(NOON, 1, draining=name == draining),
                    reporting=True,
                )
                for name in names
            }
            return replace(view, gateways=gateways)

        await self.cluster.observe(step, "test")

    async def second(self) -> None:
        """What the loop does each second."""
        self.clock.advance(SECOND)
        await self.usage.flush()
        await self.usage.judge()
        await self.shares.tell()

    def shares_of(self, *gateways: str) -> list[int]:
        told = self.cluster.view().tenancy.shares
        return [share_of(told, gateway, "acme") for gateway in gateways]


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_sums_are_right_though_reports_are_lost_doubled_and_late_and_processes_restart(
    random: Random,
) -> None:
    asyncio.run(_history(random))


async def _history(random: Random) -> None:
    clock, store = ManualClock(), MemoryStore()
    head = Head(store, clock)
    gateways = [CountingGateway(f"gw-{n}") for n in range(3)]
    expected: dict[UsageKey, Counts] = {}
    late: list[tuple[str, str, list[tuple[UsageKey, Counts]]]] = []
    for _ in range(40):
        gateway = random.choice(gateways)
        for _ in range(random.randint(0, 5)):
            of = random.choice(KEYS)
            cost = Counts(*(random.randint(0, 100) for _ in Counts._fields))
            gateway.works(of, cost)
            expected[of] = added(cost, expected.get(of, Counts()))
        late.append(gateway.report())
        match random.choice(["lost", "told", "doubled", "ends", "head", "full", "time"]):
            case "told":
                head.usage.take(*late.pop())
            case "doubled":
                for report in random.choices(late, k=3):
                    head.usage.take(*report)
            case "ends":  # its last report arrives, before or after older ones
                head.usage.take(*gateway.report())
                gateway.restarts()
            case "head":  # killed: what it had not written is told again by those who live
                await head.usage.flush()
                head = Head(store, clock)
            case "full":
                store.failing = True
                await head.usage.flush()
                store.failing = False
            case "time":
                clock.advance(timedelta(hours=random.randint(1, 30)))
                await head.usage.flush()
    random.shuffle(late)
    for report in [*late, *(gateway.report() for gateway in gateways)]:
        head.usage.take(*report)
    await head.usage.flush()
    assert await head.stored() == {of: counts for of, counts in expected.items() if any(counts)}


async def test_a_head_that_is_killed_before_it_wrote_is_told_again() -> None:
    head = Head()
    head.usage.take("gw-1", "i1", [(ACME, ONE)])
    head = Head(head.store)
    head.usage.take("gw-1", "i1", [(ACME, added(ONE, ONE))])
    await head.usage.flush()
    assert await head.stored() == {ACME: added(ONE, ONE)}


async def test_a_write_that_is_cut_off_is_made_again() -> None:
    """A gateway may hang up while its last report is written."""
    head = Head()
    before, after = HangingStore(head.store, False), HangingStore(head.store, True)
    for store in (before, after):
        usage = UsageManager(head.cluster, store, head.shares, head.spend, head.clock)
        usage.take("gw-1", "i1", [(ACME, added(ONE, ONE))])
        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(usage.flush())
            await store.hangs.wait()
            writing.cancel()
        store.hung = False
        await usage.flush()
        assert await head.stored() == {ACME: added(ONE, ONE)}


async def test_reports_of_ten_gateways_are_one_write_and_no_news_is_none() -> None:
    head = Head()
    assert isinstance(head.store, CountingStore)
    for _ in range(3):
        for n in range(10):
            head.usage.take(f"gw-{n}", f"i{n}", [(of, ONE) for of in KEYS])
        await head.usage.flush()
    assert head.store.writes == 1
    assert (await head.stored())[ACME].requests == 10


async def test_what_is_used_stands_under_the_day_on_which_it_was_heard() -> None:
    head = Head()
    head.usage.take("gw-1", "i1", [(ACME, ONE)])
    head.clock.advance(timedelta(hours=13))
    head.usage.take("gw-1", "i1", [(ACME, added(ONE, ONE))])
    await head.usage.flush()
    rows = await head.store.usage(TODAY, TODAY + timedelta(days=1), "acme")
    assert [(row.day, row.counts) for row in rows] == [
        (TODAY, ONE),
        (TODAY + timedelta(days=1), ONE),
    ]


async def test_a_head_that_holds_still_writes_nothing_and_forgets_nothing() -> None:
    head = Head()
    await head.cluster.observe(lambda view: replace(view, held="somebody knows more"), "test")
    head.usage.take("gw-1", "i1", [(ACME, ONE)])
    await head.usage.flush()
    assert await head.stored() == {}
    await head.cluster.observe(lambda view: replace(view, held=""), "test")
    await head.usage.flush()
    assert await head.stored() == {ACME: ONE}


async def test_a_quota_is_used_up_by_its_last_token_and_comes_back_at_midnight() -> None:
    head = Head()
    await head.tenants.create("acme", TenantSpec(tokens_per_day=30), Write("test"))
    await head.tenants.create("other", TenantSpec(), Write("test"))
    midnight = int(NOON.replace(hour=0).timestamp() + 24 * 3600) * 1000
    for requests, used_up in ((1, False), (2, True)):
        head.usage.take("gw-1", "i1", [(ACME, Counts(requests, 0, 10 * requests, 5 * requests))])
        await head.second()
        acme, other = tenant_routes(head.cluster.view().tenancy)
        assert (acme.quota_used_up, acme.quota_resets_at_ms) == (used_up, midnight)
        assert (other.quota_used_up, other.quota_resets_at_ms) == (False, 0)
    restarted = Head(head.store, head.clock)
    await restarted.cluster.restore()
    await restarted.usage.judge()
    assert tenant_routes(restarted.cluster.view().tenancy)[0].quota_used_up
    head.clock.advance(timedelta(hours=12))
    await head.second()
    acme, _ = tenant_routes(head.cluster.view().tenancy)
    assert (acme.quota_used_up, acme.quota_resets_at_ms) == (False, midnight + 24 * 3_600_000)


async def test_sums_of_today_are_those_of_the_last_second_and_stand_while_none_can_be_read() -> (
    None
):
    head = Head()
    for n in (1, 2):
        head.usage.take("gw-1", "i1", [(of, Counts(n, 0, 10 * n)) for of in KEYS])
        head.usage.take("gw-2", "i2", [(KEYS[1]._replace(deployment="other"), ONE)])
        await head.second()
        assert (sums := head.usage.day.sums) is not None
        assert (sums.day, sums.as_of) == (TODAY, head.clock.now())
        assert sums.by_key == {
            Holder("", ""): Counts(n, 0, 10 * n),
            Holder("acme", "key_1"): Counts(n, 0, 10 * n),
            Holder("acme", "key_2"): added(Counts(n, 0, 10 * n), ONE),
        }
    head.store.failing = True
    head.usage.take("gw-1", "i1", [(ACME, Counts(9))])
    await head.second()
    assert head.usage.day.sums == sums
    head.store.failing, head.store.unreadable = False, True
    await head.second()
    assert head.usage.day.sums == sums
    head.store.unreadable = False
    await head.second()
    assert (sums := head.usage.day.sums) is not None
    assert sums.by_key[Holder("acme", "key_1")].requests == 9
    head.clock.advance(timedelta(hours=12))
    await head.second()
    assert (sums := head.usage.day.sums) is not None
    assert (sums.day, sums.by_key) == (TODAY + timedelta(days=1), {})


async def test_a_key_is_left_out_once_it_is_past_its_end() -> None:
    head = Head()
    await head.tenants.create("acme", TenantSpec(), Write("test"))
    await head.tenants.create_key("acme", "", head.clock.now() + 2 * SECOND, Write("test"))
    told = []
    for _ in range(3):
        (acme,) = tenant_routes(head.cluster.view().tenancy)
        told.append(len(acme.keys))
        await head.second()
    assert told == [1, 1, 0]
    assert len(head.tenants.tenancy.keys_of("acme")) == 1


async def test_shares_follow_what_gateways_are_asked_for_and_are_told_seldom() -> None:
    head = Head()
    await head.tenants.create("acme", TenantSpec(requests_per_minute=60), Write("test"))
    await head.gateways("gw-1", "gw-2")
    await head.second()
    assert head.shares_of("gw-1", "gw-2") == [500, 500]
    told = set()
    for n in range(1, 61):
        head.usage.take("gw-1", "i1", [(ACME, Counts(9 * n, 0, 90 * n, 0))])
        head.usage.take("gw-2", "i2", [(ACME, Counts(n, 0, 10 * n, 0))])
        await head.second()
        told.add(tuple(head.shares_of("gw-1", "gw-2")))
        assert sum(head.shares_of("gw-1", "gw-2")) == WHOLE
    first, second = head.shares_of("gw-1", "gw-2")
    assert 750 < first <= 800
    assert second == WHOLE - first
    assert len(told) < 6
    assert head.tenants.tenancy.without_tenant("acme").shares.of == {}
    restarted = Head(head.store, head.clock)
    await restarted.cluster.restore()
    for _ in range(4):  # nobody has reported yet
        await restarted.second()
    await restarted.gateways("gw-1", "gw-2")
    for _ in range(4):
        await restarted.second()
    assert restarted.shares_of("gw-1", "gw-2") == [first, second]


async def test_a_gateway_that_drains_gives_its_share_to_those_that_take_requests() -> None:
    head = Head()
    await head.tenants.create("acme", TenantSpec(requests_per_minute=60), Write("test"))
    await head.gateways("gw-1")
    await head.second()
    assert head.shares_of("gw-1", "new") == [WHOLE, 125]
    await head.gateways("gw-1", "gw-1.2")
    await head.second()
    assert head.shares_of("gw-1", "gw-1.2") == [500, 500]
    head.clock.advance(timedelta(seconds=5))  # since the head began
    await head.gateways("gw-1", "gw-1.2", draining="gw-1")
    await head.second()
    assert head.shares_of("gw-1", "gw-1.2") == [125, WHOLE]


def test_all_together_is_the_sum() -> None:
    assert total([ONE, ONE, Counts()]) == Counts(2, 0, 20, 10, 4)
