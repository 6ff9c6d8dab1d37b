"""The Placement protocol: starting and stopping replicas on nodes, whoever runs the nodes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from penstock.control.state.deployment import AdapterBinding, Deployment, DeploymentName
from penstock.control.state.replica import NodeFacts, Replica, ReplicaId, ReplicaStatus


@dataclass(frozen=True, slots=True)
class ReplicaOrder:
    """How a replica is to be run; fields as in nodes.proto, `ReplicaSpec`."""

    replica_id: ReplicaId
    deployment: DeploymentName
    revision: int
    engine: str
    model: str
    engine_args: tuple[tuple[str, str], ...]
    adapters: tuple[AdapterBinding, ...]
    max_ongoing: int


def order_for(deployment: Deployment, replica: Replica) -> ReplicaOrder:
    """What to tell a node so that it runs this replica."""
    template = deployment.spec.template
    return ReplicaOrder(
        replica_id=replica.id,
        deployment=deployment.spec.name,
        revision=replica.revision,
        engine=template.engine,
        model=template.model,
        engine_args=template.engine_args,
        adapters=template.adapters,
        max_ongoing=template.max_ongoing,
    )


class Placement(Protocol):
    """Starts and stops replicas. Both calls may be repeated: they are idempotent by replica id."""

    async def start(self, node: NodeFacts, order: ReplicaOrder) -> ReplicaStatus:
        """Asks the node to run a replica; returns once it is on its way.

        Raises NodeUnreachable, or ReplicaRefused where asking again would not help.
        """

    async def stop(self, node: NodeFacts, replica_id: ReplicaId, drain: timedelta) -> None:
        """Asks the node to drain a replica for at most `drain`, then to stop it.

        Raises NodeUnreachable. What is not there counts as stopped.
        """
