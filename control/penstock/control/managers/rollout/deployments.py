"""Brings actual replicas to what deployments ask for: plans, and carries the plan out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Protocol

from penstock.control.errors import (
    HoldsStill,
    NodeUnreachable,
    PenstockError,
    ReplicaRefused,
    StoreUnavailable,
)
from penstock.control.managers.changes import watching
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.single_flight import SingleFlight
from penstock.control.placement.placement import Placement, order_for
from penstock.control.state.adapters.residence import residence_of
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import NodeFacts, ReplicaId, ReplicaState, ReplicaStatus
from penstock.control.state.fleet.serving import is_current
from penstock.control.state.rollout.actions import Action, Call, Start, Stop, described
from penstock.control.state.rollout.handing_over import drain_left, with_hand_over
from penstock.control.state.rollout.placing import answered, applied, stop_taken
from penstock.control.state.rollout.reconcile import calls, decisions
from penstock.control.state.rollout.replacing import Deadlines
from penstock.control.state.rollout.roles import with_roles
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

# Deadlines pass without any change of the view; failed calls are repeated no faster than this.
LOOK_AGAIN = timedelta(seconds=1)


class ReconcileObserver(Protocol):
    """Is told what the loop does, and how long that takes."""

    def reconciled(self, actions: Sequence[Action], seconds: float) -> None:
        """The loop went round once."""


class DeploymentManager:
    """The reconcile loop."""

    def __init__(
        self,
        cluster: ClusterStore,
        placement: Placement,
        clock: Clock,
        deadlines: Deadlines,
        *,
        drain: timedelta,
        new_id: Callable[[], str],
        observer: ReconcileObserver | None = None,
    ) -> None:
        self._cluster = cluster
        self._placement = placement
        self._clock = clock
        self._deadlines = deadlines
        self._drain = drain
        self._new_id = new_id
        self._observer = observer

    async def run(self) -> None:
        """Reconciles until cancelled. Begun once what the store remembers was checked."""
        async with asyncio.TaskGroup() as tasks:
            flight = SingleFlight(tasks)
            with watching(self._cluster, _what_plans_follow_from) as changed:
                while True:
                    await changed.wait(LOOK_AGAIN)
                    await self._tick(flight)

    async def _tick(self, flight: SingleFlight) -> None:
        """One plan: made and applied under one lock, in one transaction, then its calls sent."""
        began = self._clock.monotonic()
        done: list[Action] = []
        now = self._clock.steady()

        def plan(view: ClusterView) -> tuple[ClusterView, str]:
            made = decisions(view, now, self._deadlines)
            done.extend(made)
            what = "; ".join(map(described, made))
            if made:
                log.info("reconciled", extra={"action": what})
            placed = with_roles(applied(view, made, self._new_id, now))
            return with_hand_over(placed, now, self._drain), what

        try:
            view = await self._cluster.apply_plan(plan)
        except StoreUnavailable as error:
            log.error("decisions not stored", extra={"error": str(error)})
            return
        done.extend(c for c in calls(view, now, self._deadlines) if self._send(c, flight))
        if self._observer is not None:
            self._observer.reconciled(done, self._clock.monotonic() - began)

    def _send(self, call: Call, flight: SingleFlight) -> bool:
        """Whether it was sent: not where it is on its way."""
        match call:
            case Start(replica_id):
                return flight.start(call, self._start(replica_id))
            case Stop(replica_id):
                return flight.start(call, self._stop(replica_id))

    async def _start(self, replica_id: ReplicaId) -> None:
        view = self._cluster.view()
        replica = view.replicas.get(replica_id)
        node = replica and view.nodes.get(replica.node)
        deployment = replica and view.owner(replica)
        # Between plan and here it may have been given up, or its template changed: what was placed
        # is never started from another one.
        if view.held or not replica or replica.state is not ReplicaState.PENDING:
            return
        if not node or not deployment or not is_current(deployment, replica):
            return
        kept = residence_of(view, deployment, {}).orders[replica_id].kept
        order = order_for(deployment, replica, kept)
        try:
            status = await self._placement.start(node.facts, order)
        except ReplicaRefused as error:
            status = replace(replica.status, state=ReplicaState.FAILED, last_error=str(error))
        except (NodeUnreachable, HoldsStill) as error:
            await self._not_obeyed(node.facts, error)
            return
        await self._note(status)

    async def _stop(self, replica_id: ReplicaId) -> None:
        view = self._cluster.view()
        replica = view.replicas.get(replica_id)
        node = replica and view.nodes.get(replica.node)
        if view.held or not replica or not node:
            return
        try:
            drain = drain_left(view, replica, self._clock.steady(), self._drain)
            await self._placement.stop(node.facts, replica_id, drain, sleep=replica.to_sleep)
        except (NodeUnreachable, HoldsStill) as error:
            await self._not_obeyed(node.facts, error)
            return
        await self._cluster.observe(
            lambda view: stop_taken(view, replica_id), f"{replica_id}: told to stop"
        )

    async def _note(self, status: ReplicaStatus) -> None:
        now = self._clock.steady()
        await self._cluster.observe(
            lambda view: answered(view, status, now), f"{status.replica_id}: {status.state}"
        )

    async def _not_obeyed(self, node: NodeFacts, error: PenstockError) -> None:
        log.warning("node did not obey", extra={"node": node.id, "error": str(error)})
        await self._clock.sleep(LOOK_AGAIN)


def _what_plans_follow_from(view: ClusterView) -> tuple[object, ...]:
    acknowledged = [
        (g.id, g.reporting, g.report.snapshot_version if g.report else 0)
        for g in view.gateways.values()
    ]
    return (
        view.deployments,
        view.nodes,
        view.replicas,
        view.departed,
        view.canaries.named,
        view.published,
        view.held,
        acknowledged,
    )
