"""Ends shadows that have gone on for long enough, and stops those that have had their money."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, timedelta
from typing import Final

from penstock.control.errors import StoreUnavailable
from penstock.control.managers.changes import watching
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.state.cluster import ClusterView
from penstock.control.state.shadow.comparing import Standing
from penstock.control.state.shadow.shadows import TENANT, Shadow, why_ended
from penstock.control.state.tenancy.spend import NANO
from penstock.control.store.usage import UsageStore
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

LOOK_EVERY: Final = timedelta(seconds=1)


class ShadowLimits:
    """Looks once a second, while there are shadows. What their calls cost is what is stored of
    usage, as of everybody's."""

    def __init__(
        self,
        cluster: ClusterStore,
        store: UsageStore,
        standing: Callable[[str], Standing | None],
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._standing = standing
        self._clock = clock

    async def run(self) -> None:
        """Until cancelled."""
        with watching(self._cluster, lambda view: (view.shadows.named,)) as changed:
            while True:
                await changed.wait(LOOK_EVERY if self._shadows else None)
                try:
                    await self.judge()
                except StoreUnavailable as error:
                    log.error("limits of shadows not looked at", extra={"error": str(error)})

    async def judge(self) -> None:
        """Ends and stops those that are due. Raises `StoreUnavailable`."""
        if due := self._due():
            what = "; ".join(f"shadow {name} ends: {why}" for name, why in due.items())
            await self._cluster.apply_plan(lambda view: (_ended(view, due), what))
        used_up = await self._used_up()

        def step(view: ClusterView) -> ClusterView:
            compared = replace(view.shadows.compared, used_up=used_up)
            return replace(view, shadows=replace(view.shadows, compared=compared))

        if used_up != self._cluster.view().shadows.compared.used_up:
            await self._cluster.observe(step, "what shadows cost today")

    def _due(self) -> dict[str, str]:
        """Why each of those is over that are not ended yet."""
        now, found = self._clock.now(), {}
        for name, shadow in self._shadows.items():
            standing = self._standing(shadow.uid)
            why = why_ended(shadow, standing.pairs if standing else 0, now)
            if why and not shadow.ended:
                found[name] = why
        return found

    async def _used_up(self) -> frozenset[str]:
        limited = [each for each in self._shadows.values() if each.spec.usd_per_day]
        if not limited:
            return frozenset()
        sums = await self._store.sums_of(self._clock.now().astimezone(UTC).date())
        spent = {
            of.key_id: counts.cost_nanousd for of, counts in sums.items() if of.tenant == TENANT
        }
        return frozenset(
            each.uid for each in limited if each.spec.usd_per_day * NANO <= spent.get(each.uid, 0)
        )

    @property
    def _shadows(self) -> Mapping[str, Shadow]:
        return self._cluster.view().shadows.named


def _ended(view: ClusterView, due: Mapping[str, str]) -> ClusterView:
    shadows = view.shadows
    for name, why in due.items():
        if name in shadows.named:
            shadows = shadows.having(replace(shadows.named[name], ended=why))
    return replace(view, shadows=shadows)
