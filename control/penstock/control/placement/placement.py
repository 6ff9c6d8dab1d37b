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
    deployment_uid: str
    template_digest: str
    generation: int
    engine: str
    model: str
    engine_args: tuple[tuple[str, str], ...]
    adapters: tuple[AdapterBinding, ...]
    devices: tuple[str, ...]
    start_limit_ms: int


def order_for(deployment: Deployment, replica: Replica) -> ReplicaOrder:
    """What to tell a node so that it runs this replica of the deployment's present template."""
    template = deployment.spec.template
    return ReplicaOrder(
        replica_id=replica.id,
        deployment=deployment.spec.name,
        deployment_uid=replica.deployment_uid,
        template_digest=replica.template_digest,
        generation=replica.generation,
        engine=template.engine,
        model=template.model,
        engine_args=template.engine_args,
        adapters=template.adapters,
        devices=replica.devices,
        start_limit_ms=deployment.spec.start_limit_ms,
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
