"""What happened between two looks at the cluster, one line each. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.control.admin.rollout.models import GatewayModel, NodeModel, ReplicaModel


@dataclass(frozen=True, slots=True)
class Picture:
    """The cluster at one look."""

    replicas: Sequence[ReplicaModel] = ()
    nodes: Sequence[NodeModel] = ()
    gateways: Sequence[GatewayModel] = ()


def happened(before: Picture, now: Picture) -> Iterator[str]:
    """Notable changes, in words."""
    replicas = {replica.id: replica for replica in before.replicas}
    for replica in now.replicas:
        yield from _replica(replicas.get(replica.id), replica)
    gateways = {gateway.id: gateway for gateway in before.gateways}
    for gateway in now.gateways:
        known = gateways.get(gateway.id)
        if known and gateway.restarts > known.restarts:
            yield f"gateway {gateway.id} {gateway.last_error or 'ended'}: started again"
    nodes = {node.id: node for node in before.nodes}
    for node in now.nodes:
        was = nodes.get(node.id)
        if was and was.state != node.state:
            yield f"node {node.id} is {node.state}"


def _replica(before: ReplicaModel | None, now: ReplicaModel) -> Iterator[str]:
    if before is None:
        yield f"replica {now.id} is {now.state}"
        return
    if now.restarts > before.restarts:
        yield f"replica {now.id} ended ({now.last_error}): starts again"
    elif now.state != before.state and now.state in ("failed", "lost"):
        yield f"replica {now.id} {now.state}: {now.last_error or 'no reason known'}"
    if now.state == "ready" and before.state not in ("ready", "lost"):
        yield f"replica {now.id} is ready"
