"""Canaries: made, paused, resumed, promoted, aborted, deleted."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

from penstock.control.errors import Code, PenstockError
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.write import Write
from penstock.control.state.canary.canary import Canaries, Canary
from penstock.control.state.canary.counts import Counts
from penstock.control.state.canary.deciding import missing
from penstock.control.state.canary.ending import (
    aborted,
    check_not_served,
    check_promoted,
    moved_on,
    promotion_begun,
)
from penstock.control.state.canary.facts import facts_of
from penstock.control.state.canary.guards import Finding, findings
from penstock.control.state.canary.ordering import check_active, paused, promoted, resumed
from penstock.control.state.canary.spec import CanarySpec
from penstock.control.state.canary.starting import started
from penstock.control.state.cluster import ClusterView
from penstock.control.supervision.clock import Clock


@dataclass(frozen=True, slots=True)
class Account:
    """A canary with what its next decision is made from; of one that has ended, the last."""

    canary: Canary
    counts: Counts
    findings: tuple[Finding, ...]
    silent: tuple[str, ...]  # as people read it: gateways of which nothing is known
    replicas_ready: int  # of the candidate
    replicas_wanted: int  # for the share of the step that it is at
    missing: tuple[str, ...] = ()  # before it goes on, as people read it


class CanaryManager:
    """Changes the view through the cluster store, so that every gateway is told at once. All that
    write raise `StoreUnavailable` and `HoldsStill`, and `revision-mismatch`.
    """

    def __init__(self, cluster: ClusterStore, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    @property
    def canaries(self) -> Canaries:
        """All that there are."""
        return self._cluster.view().canaries

    def account(self, name: str) -> Account:
        """How one stands, with its counts. Raises `unknown-canary`."""
        view = self._cluster.view()
        canary = view.canaries.canary(name)
        counted = view.canaries.counted_of(canary)
        counts = counted.counts
        found = findings(canary.spec, counted.step, counts, counted.edges) if counted.step else ()
        if not canary.is_active:
            return Account(canary, counts, found, (), 0, 0)
        facts = facts_of(view, canary, counted, self._clock.steady())
        lacks = missing(canary, counted, found, facts)
        return Account(canary, counts, found, facts.silent, facts.ready, facts.wanted, lacks)

    async def create(self, spec: CanarySpec, write: Write) -> Canary:
        """Begins one, or has it wait for a revision. Raises `InvalidInput`, `canary-exists`,
        `canary-owns` and `conflict`."""
        uid, now = secrets.token_hex(16), self._clock.now()

        def step(view: ClusterView) -> ClusterView:
            write.check(view.canaries.named.get(spec.name), f"canary {spec.name!r}")
            made = started(view, spec, uid, now, write.origin)
            return replace(view, canaries=view.canaries.with_new(made))

        return await self._write(step, spec.name, write, f"start canary {spec.name}")

    async def pause(self, name: str, write: Write) -> Canary:
        """Keeps it at its step; a guard still rolls it back. Raises `unknown-canary` and
        `conflict`."""
        return await self._change(name, write, "pause", paused)

    async def resume(self, name: str, write: Write) -> Canary:
        """It goes on from its step. Raises `unknown-canary` and `conflict`."""
        return await self._change(name, write, "resume", resumed)

    async def promote(self, name: str, write: Write) -> Canary:
        """The candidate takes the target's place, whatever is missing; where that failed before,
        once more. Raises `unknown-canary` and `conflict`, and `no-evidence` where the policy asks
        for it and the canary has not passed its steps."""
        now = self._clock.now()

        def step(view: ClusterView) -> ClusterView:
            known = self._known(view, name, write)
            check_promoted(view, known, now)
            return promotion_begun(view, promoted(known), now)

        return await self._write(step, name, write, f"promote canary {name}")

    async def abort(self, name: str, write: Write) -> Canary:
        """Nobody has the candidate any more. Raises `unknown-canary`, and `conflict` for one that
        is not active."""
        why = f"{write.who}: {write.reason}" if write.reason else f"aborted by {write.who}"
        now = self._clock.now()

        def step(view: ClusterView) -> ClusterView:
            check_active(known := self._known(view, name, write), "aborted")
            check_not_served(view, known)
            return aborted(view, name, why, now)

        return await self._write(step, name, write, f"abort canary {name}")

    async def delete(self, name: str, write: Write) -> None:
        """Forgets one that has ended, or waits. Raises `unknown-canary`, and `canary-owns` for one
        that is active."""

        def step(view: ClusterView) -> ClusterView:
            known = self._known(view, name, write)
            if known.is_active:
                raise PenstockError(
                    f"canary {name!r} is {known.state}: abort or promote it first", Code.CANARY_OWNS
                )
            return replace(view, canaries=view.canaries.without(name))

        await write.apply(self._cluster, step, f"delete canary {name}")

    def _known(self, view: ClusterView, name: str, write: Write) -> Canary:
        known = view.canaries.canary(name)
        write.check(known, f"canary {name!r}")
        return known

    async def _change(
        self, name: str, write: Write, what: str, order: Callable[[Canary], Canary]
    ) -> Canary:
        now = self._clock.now()

        def step(view: ClusterView) -> ClusterView:
            return moved_on(view, order(self._known(view, name, write)), now)

        return await self._write(step, name, write, f"{what} canary {name}")

    async def _write(
        self, step: Callable[[ClusterView], ClusterView], name: str, write: Write, what: str
    ) -> Canary:
        view = await write.apply(self._cluster, step, what, canary=name)
        return view.canaries.canary(name)
