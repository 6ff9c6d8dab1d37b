"""Nodes: emptied before their machine goes, and taken into use again."""

from __future__ import annotations

from fastapi import APIRouter

from penstock.control.admin.resources import resources
from penstock.control.admin.rollout.models import NodeModel
from penstock.control.admin.writes import Asked, Change, Drains
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.fleet.node_drain import drain_node, forget_node
from penstock.control.supervision.clock import Clock


def nodes_api(cluster: ClusterStore, clock: Clock) -> APIRouter:
    """What operators may ask of a node."""
    router = resources("/nodes", tag="cluster")

    async def drained(node_id: str, write: Asked, *, draining: bool) -> NodeModel:
        node = await drain_node(cluster, node_id, write, draining=draining)
        write.tell(node)
        return NodeModel.of(node, cluster.liveness.nodes.get(node.id))

    @router.put("/{node_id}/drain")
    async def drain(node_id: str, write: Drains) -> NodeModel:
        """The node gets no replicas any more; those that it has are moved, replacements first."""
        return await drained(node_id, write, draining=True)

    @router.delete("/{node_id}/drain")
    async def undo_drain(node_id: str, write: Change) -> NodeModel:
        """The node may have replicas again."""
        return await drained(node_id, write, draining=False)

    @router.delete("/{node_id}", status_code=204)
    async def forget(node_id: str, write: Change) -> None:
        """The node and its replicas are shown no longer: its machine is gone for good. Refused as
        long as there is a sign of life of it."""
        await forget_node(cluster, node_id, write, clock)

    return router
