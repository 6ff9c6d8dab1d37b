"""What gateways count, brought to the store once a second or sooner, and what follows from it.

Each report tells counts since the gateway's process began. What is new of them waits here for the
next write, the highest of each count; the store adds what they grew by. So a lost, doubled or late
report changes nothing, a head that is killed in between loses nothing that a gateway tells again,
and many gateways cost no more writes than one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from penstock.control.errors import StoreUnavailable
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.tenancy.day import DayManager
from penstock.control.managers.tenancy.shares import ShareManager, reporting
from penstock.control.managers.tenancy.spend import SpendManager
from penstock.control.state.cluster import ClusterView
from penstock.control.state.tenancy.day_holds import Hold
from penstock.control.state.tenancy.tenancy import standing_at
from penstock.control.state.tenancy.usage import (
    Counts,
    Reading,
    UsageKey,
    growth,
    highest,
)
from penstock.control.store.usage import UsageStore
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

EVERY = timedelta(seconds=1)
# Where a budget may be used up: gateways report each second, and are to know within two.
HURRIED = timedelta(milliseconds=250)

_Source = tuple[str, UsageKey]  # instance, and what it counts


class UsageManager:
    """Takes reports at once, and writes them in a loop of its own. One event loop."""

    def __init__(
        self,
        cluster: ClusterStore,
        store: UsageStore,
        shares: ShareManager,
        spend: SpendManager,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._shares = shares
        self._spend = spend
        self._clock = clock
        self._seen: dict[_Source, Counts] = {}  # since midnight
        self._seen_on = self._today()
        self._waiting: dict[tuple[date, _Source], Counts] = {}
        self._day = DayManager(store, clock)
        self._writing = asyncio.Lock()

    @property
    def day(self) -> DayManager:
        """What gateways are told of today."""
        return self._day

    def take(
        self,
        gateway_id: str,
        instance: str,
        rows: Iterable[tuple[UsageKey, Counts]],
        holds: Iterable[Hold] = (),
        report: int = 0,
    ) -> None:
        """A gateway's counts, and what it has of limits of a day, by its report of this number.
        Those of a gateway that does not name its instance cannot be told apart from the one before
        it, and are left out."""
        if not instance:
            return
        self._day.take(gateway_id, instance, holds, report)
        today = self._today()
        if today != self._seen_on:  # all of them once a day: who is heard is not forgotten
            self._seen, self._seen_on = {}, today
        for of, counts in rows:
            source = (instance, of)
            before = self._seen.get(source)
            now = highest(before or Counts(), counts)
            if now == before:
                continue
            self._seen[source] = now
            self._waiting[today, source] = now
            if before is not None:
                self._shares.note(gateway_id, of.tenant, growth(before, now))

    async def flush(self) -> None:
        """Stores what waits. Where that fails it goes on waiting."""
        async with self._writing:
            if self._cluster.view().held:
                return
            taken = self._day.taken(reporting(self._cluster.view()))
            waiting, self._waiting = self._waiting, {}
            if not waiting or await self._record(waiting):
                self._day.stored(taken, news=bool(waiting))

    async def _record(self, waiting: Mapping[tuple[date, _Source], Counts]) -> bool:
        readings = [
            Reading(day, instance, of, counts) for (day, (instance, of)), counts in waiting.items()
        ]
        try:
            await self._store.record(readings)
        except StoreUnavailable as error:
            log.error("usage not stored", extra={"error": str(error)})
            self._wait_again(waiting)
            return False
        except asyncio.CancelledError:  # written or not: written again it changes nothing
            self._wait_again(waiting)
            raise
        return True

    async def judge(self) -> None:
        """Tells whose quota or budget is used up and which keys are past their end. What is stored
        counts."""
        await self._spend.judge()
        await self._day.read()
        now, today = self._now(), self._day.by_tenant()

        def step(view: ClusterView) -> ClusterView:
            standing = standing_at(view.tenancy, now, today)
            if standing == view.tenancy.standing:
                return view
            return replace(view, tenancy=replace(view.tenancy, standing=standing))

        await self._cluster.observe(step, "time and usage of tenants")

    async def run(self) -> None:
        """Writes and judges until cancelled."""
        while True:
            await self._clock.sleep(HURRIED if self._is_hurried() else EVERY)
            await self.flush()
            await self.judge()
            await self._shares.tell()

    def _is_hurried(self) -> bool:
        view = self._cluster.view()
        tenancy = view.tenancy
        return (
            self._spend.has_budgets
            or any(tenant.spec.has_day_limits for tenant in tenancy.tenants.values())
            or any(key.has_day_limits for key in tenancy.keys.values())
            or any(each.spec.usd_per_day for each in view.shadows.named.values())
        )

    def _wait_again(self, waiting: Mapping[tuple[date, _Source], Counts]) -> None:
        for name, counts in waiting.items():
            self._waiting[name] = highest(counts, self._waiting.get(name, Counts()))

    def _now(self) -> datetime:
        return self._clock.now()

    def _today(self) -> date:
        return self._now().astimezone(UTC).date()
