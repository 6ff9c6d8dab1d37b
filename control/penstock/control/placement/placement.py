"""The Placement protocol: starting and stopping replicas on nodes, whoever runs the nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from penstock.control.declared.fields import drawn
from penstock.control.state.fleet.replica import (
    KeptAdapter,
    NodeFacts,
    Replica,
    ReplicaId,
    ReplicaStatus,
)
from penstock.control.state.rollout.deployment import Deployment, DeploymentName


@dataclass(frozen=True, slots=True)
class ReplicaOrder:
    """How a replica is to be run; fields as in nodes.proto, `ReplicaSpec`."""

    replica_id: ReplicaId
    deployment: DeploymentName
    deployment_uid: str
    template_digest: str
    generation: int
    engine: str
    model: str
    engine_args: tuple[tuple[str, str], ...]
    adapters: tuple[KeptAdapter, ...]  # loaded before it is ready
    devices: tuple[str, ...]
    start_limit_ms: int
    max_adapters: int = 0
    max_adapter_rank: int = 0
    sleep: int = 0  # level of the sleep that it may be put to; 0: none
    microserving: bool = False
    microserving_rest: bool = False


def order_for(
    deployment: Deployment, replica: Replica, kept: tuple[KeptAdapter, ...] = ()
) -> ReplicaOrder:
    """What to tell a node so that it runs this replica of the deployment, with the adapters that
    it is to keep."""
    template = deployment.made_of(replica.template_digest).template
    return drawn(
        ReplicaOrder,
        replica,
        template,
        replica_id=replica.id,
        adapters=kept,
        start_limit_ms=replace(deployment.spec, template=template).usual_start_limit_ms,
        max_adapters=template.adapter_slots,
        max_adapter_rank=template.adapter_rank,
        sleep=template.sleep.level,
        microserving=bool(template.microserving),
        microserving_rest=bool(template.microserving_rest),
    )


class Placement(Protocol):
    """Starts and stops replicas, and says what adapters they hold. All calls may be repeated: they
    are idempotent by replica id."""

    async def start(self, node: NodeFacts, order: ReplicaOrder) -> ReplicaStatus:
        """Asks the node to run a replica, or to wake it; returns once it is on its way.

        Raises NodeUnreachable, or ReplicaRefused where asking again would not help.
        """

    async def stop(
        self, node: NodeFacts, replica_id: ReplicaId, drain: timedelta, *, sleep: bool
    ) -> None:
        """Asks the node to drain a replica for at most `drain`, then to stop it, or to put it to
        sleep where it can be.

        Raises NodeUnreachable. What is not there counts as stopped.
        """

    async def keep_adapters(
        self,
        node: NodeFacts,
        replica_id: ReplicaId,
        kept: Sequence[KeptAdapter],
        dropped: Sequence[str],
    ) -> None:
        """Tells the node what a replica is to hold from now on, in place of what it was told
        before; returns once that is remembered there. `dropped`: names that are no longer
        registered.

        Raises NodeUnreachable, `unknown-replica` where no such replica runs there, or
        ReplicaRefused where asking again would not help.
        """
