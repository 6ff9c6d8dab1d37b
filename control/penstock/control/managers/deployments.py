"""Brings actual replicas to what deployments desire: plans, and carries the plan out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from penstock.control.errors import NodeUnreachable, ReplicaRefused, StoreUnavailable
from penstock.control.managers.changes import watching
from penstock.control.managers.clock import Clock
from penstock.control.managers.errands import Errands
from penstock.control.managers.keeper import Keeper
from penstock.control.placement.placement import Placement, order_for
from penstock.control.state.placing import answered, draining, placed, settled
from penstock.control.state.reconcile import (
    Action,
    Deadlines,
    Drain,
    Place,
    Settle,
    Start,
    Stop,
    is_current,
    plan,
)
from penstock.control.state.replica import NodeFacts, ReplicaId, ReplicaState, ReplicaStatus
from penstock.control.store.store import Author

log = logging.getLogger(__name__)

# Deadlines pass without any change of the view; failed calls are repeated no faster than this.
LOOK_AGAIN = timedelta(seconds=1)


class DeploymentManager:
    """The reconcile loop."""

    def __init__(
        self,
        keeper: Keeper,
        placement: Placement,
        clock: Clock,
        deadlines: Deadlines,
        *,
        drain: timedelta,
        new_id: Callable[[], str],
    ) -> None:
        self._keeper = keeper
        self._placement = placement
        self._clock = clock
        self._deadlines = deadlines
        self._drain = drain
        self._new_id = new_id

    async def run(self) -> None:
        """Reconciles until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            errands = Errands(tasks)
            with watching(self._keeper.cluster) as changed:
                while True:
                    await changed.wait(LOOK_AGAIN)
                    view = self._keeper.cluster.view()
                    for action in plan(view, self._clock.now(), self._deadlines):
                        await self._carry_out(action, errands)

    async def _carry_out(self, action: Action, errands: Errands) -> None:
        match action:
            case Start(replica_id):
                errands.send(action, self._start(replica_id))
            case Stop(replica_id):
                errands.send(action, self._stop(replica_id))
            case Place() | Drain() | Settle():
                await self._decide(action)

    async def _decide(self, action: Place | Drain | Settle) -> None:
        now = self._clock.now()
        try:
            match action:
                case Place(deployment, node):
                    replica_id = ReplicaId(f"{deployment}-{self._new_id()}")
                    what = f"place {replica_id} on {node}"
                    await self._keeper.desire(
                        lambda view: placed(view, action, replica_id, now), Author("head", what)
                    )
                case Drain(replica_id, reason):
                    what = f"drain {replica_id}: {reason}"
                    await self._keeper.desire(
                        lambda view: draining(view, action, now), Author("head", what)
                    )
                case Settle(deployment):
                    what = f"{deployment} is as desired"
                    await self._keeper.desire(
                        lambda view: settled(view, action), Author("head", what)
                    )
        except StoreUnavailable as error:
            log.error("decision not stored", extra={"action": str(action), "error": str(error)})
            return
        log.info("reconciled", extra={"action": what})

    async def _start(self, replica_id: ReplicaId) -> None:
        view = self._keeper.cluster.view()
        replica = view.replicas.get(replica_id)
        node = replica and view.nodes.get(replica.node)
        deployment = replica and view.owner(replica)
        # Between plan and here the template may have changed: what was placed is never started
        # from another one.
        if not replica or not node or not deployment or not is_current(deployment, replica):
            return
        order = order_for(deployment, replica)
        try:
            status = await self._placement.start(node.facts, order)
        except ReplicaRefused as error:
            status = replace(replica.status, state=ReplicaState.FAILED, last_error=str(error))
        except NodeUnreachable as error:
            await self._unreachable(node.facts, error)
            return
        await self._note(status)

    async def _stop(self, replica_id: ReplicaId) -> None:
        view = self._keeper.cluster.view()
        replica = view.replicas.get(replica_id)
        node = replica and view.nodes.get(replica.node)
        if not replica or not node:
            return
        try:
            await self._placement.stop(node.facts, replica_id, self._drain)
        except NodeUnreachable as error:
            await self._unreachable(node.facts, error)
            return
        await self._note(replace(replica.status, state=ReplicaState.DRAINING))

    async def _note(self, status: ReplicaStatus) -> None:
        now = self._clock.now()
        await self._keeper.observe(
            lambda view: answered(view, status, now), f"{status.replica_id}: {status.state}"
        )

    async def _unreachable(self, node: NodeFacts, error: NodeUnreachable) -> None:
        log.warning("node did not answer", extra={"node": node.id, "error": str(error)})
        await self._clock.sleep(LOOK_AGAIN)
