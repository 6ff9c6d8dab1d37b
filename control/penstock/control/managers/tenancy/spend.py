"""Follows what deployments spend today, and tells whose budget is used up."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime

from penstock.control.errors import StoreUnavailable
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.state.cluster import ClusterView
from penstock.control.state.tenancy.spend import Spend, spending_at
from penstock.control.store.usage import UsageStore
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)


class SpendManager:
    """What is stored counts: it is what a head that is killed now would begin with."""

    def __init__(self, cluster: ClusterStore, store: UsageStore, clock: Clock) -> None:
        self._cluster = cluster
        self._store = store
        self._clock = clock
        self._day: date | None = None  # of UTC, that `_spent` is of
        self._spent: Mapping[str, Spend] = {}

    @property
    def has_budgets(self) -> bool:
        """Whether any deployment may have to be stopped."""
        return any(d.spec.budgets for d in self._cluster.view().deployments.values())

    def today(self, deployment: str) -> Spend:
        """What a deployment that has a budget, or costs money, has spent since midnight UTC, as far
        as it was stored a second ago."""
        return self._on(self._clock.now()).get(deployment, Spend())

    async def judge(self) -> None:
        """Reads what was spent today and puts into the view whose budget that uses up. Where it
        cannot be read, what was read last goes on to count, until its day is over."""
        now = self._clock.now()
        deployments = self._cluster.view().deployments.values()
        if any(d.spec.budgets or d.spec.costs_money for d in deployments):
            day = now.astimezone(UTC).date()
            try:
                rows = await self._store.spent(day, day)
                self._day, self._spent = day, {row.deployment: row.spend for row in rows}
            except StoreUnavailable as error:
                log.error("spend not read", extra={"error": str(error)})
        today = self._on(now)

        def step(view: ClusterView) -> ClusterView:
            budgets = [(name, d.spec.budgets) for name, d in view.deployments.items()]
            spending = spending_at(now, budgets, today)
            return view if spending == view.spending else replace(view, spending=spending)

        await self._cluster.observe(step, "time and spend of deployments")

    def _on(self, now: datetime) -> Mapping[str, Spend]:
        """What was read, if it is of this day."""
        return self._spent if self._day == now.astimezone(UTC).date() else {}
