"""Judges canaries each second, and carries out what was decided."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, Protocol

from penstock.adapters.adapter import AdapterRef
from penstock.adapters.promotion import Evidence
from penstock.control.errors import NotFound, PenstockError, StoreUnavailable, Unavailable
from penstock.control.managers.changes import watching
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.state.adapters.registry import StoredEvidence
from penstock.control.state.canary.canary import Canary, CanaryState, Counted
from penstock.control.state.canary.ending import alias_moved
from penstock.control.state.canary.guards import Finding
from penstock.control.state.canary.judging import findings_of, judged
from penstock.control.state.canary.record import KIND, record_of, recorded, unrecorded
from penstock.control.state.canary.spec import CanarySpec
from penstock.control.state.cluster import ClusterView
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

LOOK_EVERY: Final = timedelta(seconds=1)


class Account(Protocol):
    """All that the comparer says of a shadow."""

    @property
    def json(self) -> str:
        """An object."""


class Comparisons(Protocol):
    """Who knows how shadows compare."""

    async def account(self, uid: str, pairs_a_day: float, *, with_texts: bool = False) -> Account:
        """Raises `unknown-shadow` and `Unavailable`."""


class Reports(Protocol):
    """Where reports of evidence are kept."""

    def kept(self, report: Mapping[str, Any] | None) -> AbstractAsyncContextManager[str]:
        """Keeps one until the block ends, and while evidence names it; gives its digest. Raises
        `StoreUnavailable`."""


class CanaryJudge:
    """The loop. All that it knows is in the view: a head that starts goes on where the last one
    stopped."""

    def __init__(
        self, cluster: ClusterStore, reports: Reports, comparisons: Comparisons, clock: Clock
    ) -> None:
        self._cluster = cluster
        self._reports = reports
        self._comparisons = comparisons
        self._clock = clock
        self._found: dict[str, tuple[Counted, tuple[Finding, ...]]] = {}  # by uid
        self._opened = asyncio.Event()

    def open(self) -> None:
        """What the store remembers was checked against who is there."""
        self._opened.set()

    async def run(self) -> None:
        """Until cancelled; nothing before `open`."""
        await self._opened.wait()
        with watching(self._cluster, lambda view: (view.canaries.shared, view.held)) as changed:
            while True:
                view = self._cluster.view()
                waits = view.canaries.shared or unrecorded(view)
                await changed.wait(LOOK_EVERY if waits else None)
                try:
                    await self.judge()
                except StoreUnavailable as error:
                    log.error("canaries not judged", extra={"error": str(error)})

    async def judge(self) -> None:
        """Takes in what gateways told, and does what follows; nothing while this head holds still.
        Raises `StoreUnavailable`: nothing has happened then."""
        view = self._cluster.view()
        if view.held:
            return
        self._found = {uid: it for uid, it in self._found.items() if uid in view.canaries.counted}
        if any(True for _ in _active(view)):
            await self._cluster.apply_plan(self._plan)
        for canary in _active(self._cluster.view()):
            if canary.promoting and canary.target.alias:
                await self._move_alias(canary)
        for canary in unrecorded(self._cluster.view()):
            await self._record(canary)

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

    async def _move_alias(self, canary: Canary) -> None:
        """In one transaction with the evidence. Raises `StoreUnavailable`."""
        async with self._reports.kept(await self._record_of(canary)) as report:
            await self._cluster.apply_plan(lambda view: self._moved(view, canary, report))

    async def _record(self, canary: Canary) -> None:
        """Keeps what one that has ended found of a template. Raises `StoreUnavailable`."""
        own, what = f"ev_{secrets.token_hex(8)}", f"canary {canary.spec.name}: its record is kept"
        async with self._reports.kept(await self._record_of(canary)) as report:
            await self._cluster.apply_plan(lambda view: (recorded(view, canary, own, report), what))

    async def _record_of(self, canary: Canary) -> Mapping[str, Any]:
        counts = self._cluster.view().canaries.counted_of(canary).counts
        return record_of(canary, counts, await self._shadow(canary))

    def _moved(self, view: ClusterView, canary: Canary, report: str) -> tuple[ClusterView, str]:
        known = view.canaries.named.get(canary.spec.name)
        if known is None or known.uid != canary.uid or not known.promoting:
            return view, ""  # aborted meanwhile
        now = self._clock.now()
        try:
            manifest = view.adapters.version(canary.candidate).manifest
            told = StoredEvidence(
                f"ev_{secrets.token_hex(8)}",
                AdapterRef.parse(canary.candidate),
                Evidence(
                    manifest.digest,
                    manifest.family,
                    KIND,
                    True,
                    now,
                    AdapterRef.parse(known.stable),
                ),
                report,
            )
            view = alias_moved(view, known, told, now)
        except PenstockError as error:
            held = replace(known, state=CanaryState.HELD, why=str(error))
            view = replace(view, canaries=view.canaries.having(held))
        return view, f"canary {canary.spec.name} moves {canary.target} to {canary.candidate}"

    async def _shadow(self, canary: Canary) -> Any:
        """The report of the shadow that it names; None where nobody can tell."""
        shadow = self._cluster.view().shadows.named.get(canary.spec.shadow)
        if shadow is None:
            return None
        try:
            return json.loads((await self._comparisons.account(shadow.uid, 0)).json)
        except (NotFound, Unavailable) as error:
            log.warning("a canary's evidence lacks its shadow's report: %s", error)
            return None


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
