"""How many requests each gateway may have under way: told by reports, and by what was heard."""

from __future__ import annotations

from dataclasses import replace

from penstock.control.managers.keeper import Keeper
from penstock.control.managers.shares import EXPECTED_FOR, TELL_EVERY, ShareManager
from penstock.control.managers.tenants import TenantManager
from penstock.control.state.cluster import Cluster, ClusterView, Gateway, GatewayReport
from penstock.control.state.cluster import GatewayState as State
from penstock.control.state.stream_shares import streams_of
from penstock.control.state.tenants import TenantSpec
from penstock.control.state.usage import Counts
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import NOON

LIMIT = 20
REFUSED = Counts(rejected=500)


class Head:
    """Shares over a store, and gateways that report what a test says."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store, self.clock = store or MemoryStore(), ManualClock()
        self.keeper = Keeper(Cluster(), self.store, self.clock)
        self.shares = ShareManager(self.keeper, self.clock)

    async def with_tenant(self, limit: int = LIMIT) -> Head:
        await TenantManager(self.keeper, self.clock).create(
            "acme", TenantSpec(max_streams=limit), "test"
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

        await self.keeper.observe(step, "test")

    async def tells(self, *names: str) -> list[int]:
        """What these may run once it was time to tell it."""
        self.clock.advance(max(TELL_EVERY, EXPECTED_FOR))
        await self.shares.tell()
        told = self.keeper.cluster.view().tenancy.shares
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
    assert told[-1] == [4, 16]


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

    await head.keeper.observe(gone, "test")
    assert await head.tells("new") == [LIMIT]


async def test_a_restarted_head_goes_on_from_what_was_told() -> None:
    head = await Head().with_tenant()
    for _ in range(3):
        await head.hears("a", 17)
        await head.hears("b", 0)
        first, second = await head.tells("a", "b")
    assert first > 2 * second
    again = Head(head.store)
    await again.keeper.restore()
    await again.hears("b", 0)  # the other one has not reported yet
    again.clock.advance(EXPECTED_FOR / 2)
    await again.shares.tell()
    shares = again.keeper.cluster.view().tenancy.shares
    assert shares.streams["acme"].of == {"a": first, "b": second}


async def test_a_tenant_that_is_deleted_leaves_no_shares() -> None:
    head = await Head().with_tenant()
    await head.hears("a", 17)
    await head.hears("b", 0)
    await head.tells()
    await head.tells()
    tenancy = head.keeper.cluster.view().tenancy
    assert tenancy.shares.streams
    assert not tenancy.without_tenant("acme").shares.streams
