"""Keeps what canaries found as evidence, and moves an alias with it, in one transaction."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, Protocol

from penstock.control.declared.codec import Codec
from penstock.control.errors import NotFound, PenstockError, StoreUnavailable, Unavailable
from penstock.control.managers.changes import watching
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.state.canary.canary import Canary, CanaryState
from penstock.control.state.canary.counts import Counts
from penstock.control.state.canary.ending import alias_moved
from penstock.control.state.canary.record import recorded, unrecorded
from penstock.control.state.cluster import ClusterView
from penstock.control.store.documents import CANARIES
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

AGAIN_AFTER: Final = timedelta(seconds=1)
_COUNTS: Final = Codec(Counts)


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


class CanaryRecords:
    """A loop beside that which judges: whoever asks the comparer, or writes a file, may wait, and
    no rollback is to wait for that."""

    def __init__(
        self, cluster: ClusterStore, reports: Reports, comparisons: Comparisons, clock: Clock
    ) -> None:
        self._cluster = cluster
        self._reports = reports
        self._comparisons = comparisons
        self._clock = clock

    async def run(self) -> None:
        """Until cancelled."""
        with watching(self._cluster, lambda view: (view.canaries.shared, view.held)) as changed:
            while True:
                await changed.wait(AGAIN_AFTER if any(_due(self._view)) else None)
                try:
                    await self.keep()
                except StoreUnavailable as error:
                    log.error("records of canaries not kept", extra={"error": str(error)})

    async def keep(self) -> None:
        """What is due; nothing while this head holds still. Raises `StoreUnavailable`: the rest is
        done another time."""
        if self._view.held:
            return
        for canary in tuple(_due(self._view)):
            async with self._reports.kept(await self._record_of(canary)) as report:
                await self._cluster.apply_plan(lambda view: self._kept(view, canary, report))  # noqa: B023

    def _kept(self, view: ClusterView, canary: Canary, report: str) -> tuple[ClusterView, str]:
        own, name = f"ev_{secrets.token_hex(8)}", canary.spec.name
        if not canary.is_active:
            return recorded(view, canary, own, report), f"canary {name}: its record is kept"
        known = view.canaries.named.get(name)
        if known is None or known.uid != canary.uid or not known.promoting:
            return view, ""  # aborted meanwhile
        try:
            view = alias_moved(view, known, own, report, self._clock.now())
        except PenstockError as error:
            held = replace(known, state=CanaryState.HELD, why=str(error))
            view = replace(view, canaries=view.canaries.having(held))
        return view, f"canary {name} moves {canary.target} to {canary.candidate}"

    async def _record_of(self, canary: Canary) -> Mapping[str, Any]:
        """How it went, what its last step counted, and the report of the shadow that it names;
        None: it names none, or nobody can tell."""
        return {
            "canary": CANARIES.document(canary),
            "counts": _COUNTS.document(self._view.canaries.counted_of(canary).counts),
            "shadow": await self._shadow(canary),
        }

    async def _shadow(self, canary: Canary) -> Any:
        shadow = self._view.shadows.named.get(canary.spec.shadow)
        if shadow is None:
            return None
        try:
            return json.loads((await self._comparisons.account(shadow.uid, 0)).json)
        except (NotFound, Unavailable) as error:
            log.warning("a canary's evidence lacks its shadow's report: %s", error)
            return None

    @property
    def _view(self) -> ClusterView:
        return self._cluster.view()


def _due(view: ClusterView) -> Iterator[Canary]:
    """Aliases that are to move, and what has ended."""
    for _, canary in sorted(view.canaries.named.items()):
        if canary.is_active and canary.promoting and canary.target.alias:
            yield canary
    yield from unrecorded(view)
