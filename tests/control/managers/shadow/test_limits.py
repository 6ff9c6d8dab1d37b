"""A shadow ends with its pairs or its time, and stops for the day with its money."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.shadow.limits import ShadowLimits
from penstock.control.state.cluster import ClusterView
from penstock.control.state.shadow.comparing import Standing
from penstock.control.state.shadow.shadows import TENANT, Shadow
from penstock.control.state.shadow.spec import Candidate, Primary, ShadowSpec, Until
from penstock.control.state.tenancy.usage import Counts, Reading, UsageKey
from penstock.control.store.store import Author
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import NOON


class World:
    """Limits, over one shadow of so many pairs."""

    def __init__(self) -> None:
        self.store, self.clock, self.pairs = MemoryStore(), ManualClock(), 0
        self.cluster = ClusterStore(self.store, self.clock)
        self.limits = ShadowLimits(self.cluster, self.store, self.standing, self.clock)

    def standing(self, uid: str) -> Standing:
        return Standing(uid, "undecided", self.pairs, 0)

    async def has(self, **more: Any) -> None:
        spec = ShadowSpec("s", Primary("chat"), Candidate("small"), 100, **more)

        def step(view: ClusterView) -> ClusterView:
            return replace(view, shadows=view.shadows.with_new(Shadow(spec, "u1", 7, NOON)))

        await self.cluster.apply(step, Author("test", "make"))

    async def spent(self, nanousd: int, tenant: str = TENANT) -> None:
        of = UsageKey(tenant, "u1", "small", "")
        counts = Counts(requests=1, cost_nanousd=nanousd)
        await self.store.record([Reading(self.clock.now().date(), f"i-{tenant}", of, counts)])

    def ended(self) -> str:
        return self.cluster.view().shadows.shadow("s").ended

    @property
    def used_up(self) -> frozenset[str]:
        return self.cluster.view().shadows.compared.used_up


async def test_it_ends_with_its_pairs_and_is_told_why_in_the_audit_trail() -> None:
    world = World()
    await world.has(until=Until(pairs=500))
    world.pairs = 499
    await world.limits.judge()
    assert not world.ended()
    world.pairs = 500
    for _ in range(2):
        await world.limits.judge()
    assert world.ended() == "500 pairs are counted"
    what = [entry.what for entry in await world.store.audit(9)]
    assert what == ["shadow s ends: 500 pairs are counted", "make"]


async def test_it_ends_with_its_time() -> None:
    world = World()
    await world.has(until=Until(at=NOON + timedelta(hours=1)))
    await world.limits.judge()
    assert not world.ended()
    world.clock.advance(timedelta(hours=1))
    await world.limits.judge()
    assert world.ended().startswith("it is past 2026-01-02T13:00")


async def test_money_is_what_usage_says_until_midnight() -> None:
    world = World()
    await world.has(usd_per_day=0.5)
    await world.spent(400_000_000)
    await world.spent(900_000_000, tenant="acme")  # whose key has the same id by chance
    await world.limits.judge()
    assert not world.used_up
    await world.spent(500_000_000)
    await world.limits.judge()
    assert world.used_up == {"u1"}
    world.clock.advance(timedelta(hours=12))
    await world.limits.judge()
    assert not world.used_up


async def test_one_without_a_limit_may_cost_anything() -> None:
    world = World()
    await world.has()
    await world.spent(10**12)
    await world.limits.judge()
    assert not world.used_up
