"""How many requests each gateway may have under way: told by reports, and by what was heard."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.tenancy.shares import EXPECTED_FOR, TELL_EVERY, ShareManager
from penstock.control.managers.tenancy.tenants import TenantManager
from penstock.control.managers.write import Write
from penstock.control.state.cluster import ClusterView, Gateway, GatewayReport, Published
from penstock.control.state.cluster import GatewayState as State
from penstock.control.state.tenancy.stream_shares import streams_of
from penstock.control.state.tenancy.tenants import TenantSpec
from penstock.control.state.tenancy.usage import Counts
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import NOON

LIMIT = 20
UPTIME = timedelta(days=1)  # of the machine, when a head begins
REFUSED = Counts(rejected=500)


class Head:
    """Shares over a store, and gateways that report what a test says."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store, self.clock = store or MemoryStore(), ManualClock()
        self.clock.advance(UPTIME)
        self.cluster = ClusterStore(self.store, self.clock)
        self.shares = ShareManager(self.cluster, self.clock)

    async def with_tenant(self, limit: int = LIMIT) -> Head:
        await TenantManager(self.cluster, self.clock).create(
            "acme", TenantSpec(max_streams=limit), Write("test")
        )
        return self

    async def hears(
        self, name: str, runs: int, *, draining: bool = False, behind: bool = False
    ) -> None:
        """A gateway reports: one that has taken in all that was told, or nothing of it."""

        def step(view: ClusterView) -> ClusterView:
            version = 0 if behind else view.published.version + 1
            report = GatewayReport(NOON, version, draining=draining, streams={"acme": runs})
            return view.with_gateway(Gateway(name, State.REMOTE, report=report, reporting=True))

        await self.cluster.observe(step, "test")

    async def tells(self, *names: str) -> list[int]:
        """What these may run once it was time to tell it."""
        self.clock.advance(max(TELL_EVERY, EXPECTED_FOR))
        await self.shares.tell()
        told = self.cluster.view().tenancy.shares
        return [streams_of(told.streams.get("acme"), told.members, name, LIMIT) for name in names]


async def test_what_runs_is_no_others_and_follows_who_refuses_as_it_ends() -> None:
    head = await Head().with_tenant()
    for name in ("a", "b"):
        await head.hears(name, 0)
    assert await head.tells("a", "b") == [10, 10]
    told = []
    for a_runs in (10, 10, 10, 4, 0, 0, 0, 0):
        await head.hears("a", a_runs)
        head.shares.note("b", "acme", REFUSED)
        told.append(await head.tells("a", "b"))
        assert max(a_runs, told[-1][0]) + told[-1][1] <= LIMIT
    assert told[0][1] == 10, "what a gives back is not told away at once"
    assert sum(told[-1]) == LIMIT
    assert told[-1][1] >= 15


async def test_what_a_gateway_that_hears_late_may_still_begin_is_not_given_away() -> None:
    head = await Head().with_tenant()
    for name in ("a", "b"):
        await head.hears(name, 0)
    assert await head.tells("a", "b") == [10, 10]
    for _ in range(4):
        head.shares.note("b", "acme", REFUSED)
        await head.hears("a", 0, behind=True)
        assert await head.tells("b") == [10]
    await head.hears("a", 0)
    head.shares.note("b", "acme", REFUSED)
    assert await head.tells("a", "b") == [3, 17]


async def test_one_that_drains_keeps_what_it_runs_and_one_that_is_gone_leaves_all() -> None:
    head = await Head().with_tenant()
    await head.hears("old", 15)
    assert await head.tells("old", "new") == [LIMIT, 1]
    await head.hears("new", 0)
    await head.hears("old", 15, draining=True)
    assert await head.tells("new") == [5]
    await head.hears("old", 2, draining=True)
    assert await head.tells("new") == [18]

    def gone(view: ClusterView) -> ClusterView:
        return replace(view, gateways={"new": view.gateways["new"]})

    await head.cluster.observe(gone, "test")
    assert await head.tells("new") == [LIMIT]


async def test_a_restarted_head_goes_on_from_what_was_told_and_gives_nothing_away_unheard() -> None:
    head = await Head().with_tenant()
    for _ in range(3):
        await head.hears("a", 17)
        await head.hears("b", 0)
        first, second = await head.tells("a", "b")
    assert first > 2 * second
    again = Head(head.store)
    await again.cluster.restore()
    await again.hears("b", 0)  # the other one has not reported yet
    for _ in range(4):
        again.clock.advance(EXPECTED_FOR / 5)
        again.shares.note("b", "acme", REFUSED)
        await again.shares.tell()
        told = again.cluster.view().tenancy.shares.streams["acme"].of
        assert told == {"a": first, "b": second}
    await again.hears("a", 17)
    assert (await again.tells("b"))[0] <= LIMIT - 17


async def test_the_last_shares_hold_while_no_gateway_takes_requests() -> None:
    head = await Head().with_tenant()
    await head.hears("a", 3)
    assert await head.tells("a") == [LIMIT]
    await head.hears("a", 3, draining=True)
    assert await head.tells("a") == [LIMIT]
    again = Head(head.store)
    await again.cluster.restore()
    assert await again.tells("a", "new") == [LIMIT, 1]


async def test_a_limit_that_changes_gives_nobody_what_still_runs() -> None:
    head = await Head().with_tenant()
    await head.hears("old", 15)
    await head.tells()
    await head.hears("new", 0)
    await head.hears("old", 15, draining=True)
    assert await head.tells("new") == [5]
    tenants = TenantManager(head.cluster, head.clock)
    await tenants.put("acme", TenantSpec(max_streams=LIMIT + 1), Write("test"))
    told = head.cluster.view().tenancy.shares
    assert streams_of(told.streams["acme"], told.members, "new", LIMIT + 1) == 5
    await head.tells()
    told = head.cluster.view().tenancy.shares
    assert streams_of(told.streams["acme"], told.members, "new", LIMIT + 1) == 6


async def test_nothing_is_told_where_nobody_needs_another_part() -> None:
    head = await Head().with_tenant()
    for n in range(12):
        await head.hears("a", n % 2)
        await head.hears("b", 1 - n % 2)
        assert await head.tells("a", "b") == [10, 10]
    assert not head.cluster.view().tenancy.shares.streams


@dataclass
class SimulatedGateway:
    """Begins what it may by what it has heard, until it drains; what runs there ends late."""

    may_run: int
    observed: int  # version
    runs: int = 0
    draining: bool = False


class Fleet:
    """Gateways that come, hear, report, drain and go in any order."""

    def __init__(self, random: Random) -> None:
        self.random, self.head, self.joined = random, Head(), 0
        self.gateways: dict[str, SimulatedGateway] = {}

    def newest(self, name: str) -> tuple[int, int]:
        """What a gateway that hears now may run, and of which version."""
        view = self.head.cluster.view()
        told = view.tenancy.shares
        part = streams_of(told.streams.get("acme"), told.members, name, LIMIT)
        return part or LIMIT, view.published.version

    def joins(self) -> None:
        self.joined += 1
        name = f"gw-{self.joined}"
        self.gateways[name] = SimulatedGateway(*self.newest(name))

    async def reports(self, name: str) -> None:
        gateway = self.gateways[name]
        report = GatewayReport(
            NOON, gateway.observed, draining=gateway.draining, streams={"acme": gateway.runs}
        )
        known = Gateway(name, State.REMOTE, report=report, reporting=True)
        await self.head.cluster.observe(lambda view: view.with_gateway(known), "test")

    async def is_told(self) -> None:
        self.head.clock.advance(timedelta(seconds=self.random.choice([1, 5])))
        before = self.head.cluster.view().tenancy.shares
        await self.head.shares.tell()
        if self.head.cluster.view().tenancy.shares != before:
            await self.head.cluster.observe(_with_next_version, "test")

    async def step(self) -> None:
        """Anything, to anybody."""
        name = self.random.choice(list(self.gateways))
        gateway = self.gateways[name]
        what = ["flood", "flood", "ends", "hears", "hears", "reports", "told", "told"]
        match self.random.choice([*what, "joins", "drains", "goes"]):
            case "flood" if not gateway.draining:
                self.head.shares.note(name, "acme", REFUSED)
                gateway.runs = max(gateway.runs, gateway.may_run)
            case "ends":
                gateway.runs = self.random.randint(0, gateway.runs)
            case "hears":
                gateway.may_run, gateway.observed = self.newest(name)
            case "reports":
                await self.reports(name)
            case "told":
                await self.is_told()
            case "joins" if len(self.gateways) < 5:
                self.joins()
            case "drains" if not self.random.randrange(3):
                gateway.draining = True
                await self.reports(name)
            case "goes" if gateway.draining and not gateway.runs:
                del self.gateways[name]
                await self.head.cluster.observe(lambda view: _without(view, name), "test")
                if not self.gateways:
                    self.joins()


def _with_next_version(view: ClusterView) -> ClusterView:
    return replace(view, published=Published(view.published.version + 1))


def _without(view: ClusterView, name: str) -> ClusterView:
    return replace(view, gateways={n: g for n, g in view.gateways.items() if n != name})


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_limit_holds_whoever_comes_drains_hears_late_and_goes(random: Random) -> None:
    asyncio.run(_history(random))


async def _history(random: Random) -> None:
    fleet = Fleet(random)
    await fleet.head.with_tenant()
    fleet.joins()
    await fleet.reports("gw-1")
    await fleet.is_told()  # before that there are no shares that anybody could tell
    for _ in range(100):
        await fleet.step()
        running = [gateway.runs for gateway in fleet.gateways.values()]
        # Each that came while all was in use may begin one.
        assert sum(running) <= LIMIT + fleet.joined - 1


async def test_a_tenant_that_is_deleted_leaves_no_shares() -> None:
    head = await Head().with_tenant()
    await head.hears("a", 17)
    await head.hears("b", 0)
    await head.tells()
    await head.tells()
    tenancy = head.cluster.view().tenancy
    assert tenancy.shares.streams
    assert not tenancy.without_tenant("acme").shares.streams
