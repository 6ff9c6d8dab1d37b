"""Judges canaries each second, and as soon as a gateway tells of a session that was broken."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from penstock.control.errors import StoreUnavailable
from penstock.control.managers.canary.records import CanaryRecords
from penstock.control.managers.changes import watching
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.state.canary.canary import Canary, Counted
from penstock.control.state.canary.guards import Finding
from penstock.control.state.canary.judging import findings_of, judged
from penstock.control.state.canary.spec import CanarySpec
from penstock.control.state.cluster import ClusterView
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

LOOK_EVERY: Final = timedelta(seconds=1)


class CanaryJudge:
    """The loop. All that it knows is in the view: a head that starts goes on where the last one
    stopped."""

    def __init__(self, cluster: ClusterStore, records: CanaryRecords, clock: Clock) -> None:
        self._cluster = cluster
        self._records = records
        self._clock = clock
        self._found: dict[str, tuple[Counted, tuple[Finding, ...]]] = {}  # by uid
        self._opened = asyncio.Event()

    def open(self) -> None:
        """What the store remembers was checked against who is there."""
        self._opened.set()

    async def run(self) -> None:
        """Judges, and keeps records, until cancelled; nothing before `open`."""
        await self._opened.wait()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._records.run())
            tasks.create_task(self._judge())

    async def _judge(self) -> None:
        with watching(self._cluster, _news) as changed:
            while True:
                await changed.wait(LOOK_EVERY if self._cluster.view().canaries.shared else None)
                try:
                    await self.judge()
                except StoreUnavailable as error:
                    log.error("canaries not judged", extra={"error": str(error)})

    async def judge(self) -> None:
        """Takes in what gateways told, and does what follows; nothing while this head holds still.
        Raises `StoreUnavailable`: nothing has happened then."""
        view = self._cluster.view()
        self._found = {uid: it for uid, it in self._found.items() if uid in view.canaries.counted}
        if view.canaries.shared:
            await self._cluster.apply_plan(self._plan)

    def _plan(self, view: ClusterView) -> tuple[ClusterView, str]:
        before = view
        for canary in tuple(_active(view)):
            view = judged(view, canary, self._clock.steady(), self._findings)
        return view, _what_happened(before, view)

    def _findings(self, spec: CanarySpec, counted: Counted) -> tuple[Finding, ...]:
        """Computed anew where something was counted."""
        known = self._found.get(counted.uid)
        if known is None or known[0] != counted:
            known = (counted, findings_of(spec, counted))
            self._found[counted.uid] = known
        return known[1]


def _news(view: ClusterView) -> tuple[object, ...]:
    """What is not to wait for the next second."""
    told = (g.report.canaries for g in view.gateways.values() if g.report)
    bad = sum(each.counts.candidate.bad_sessions for row in told for each in row)
    return view.canaries.shared, view.held, bad


def _active(view: ClusterView) -> Iterator[Canary]:
    return (canary for _, canary in sorted(view.canaries.named.items()) if canary.is_active)


def _what_happened(before: ClusterView, after: ClusterView) -> str:
    """For the audit trail."""
    moved = (
        f"canary {name} is {canary.state} at step {canary.step}: {canary.why}"
        for name, canary in sorted(after.canaries.named.items())
        if canary != before.canaries.named[name]
    )
    return "; ".join(moved) or "what gateways counted of canaries"
