"""Nodes: emptied before their machine goes, and taken into use again."""

from __future__ import annotations

from fastapi import APIRouter

from penstock.control.admin.auth import Operator
from penstock.control.admin.resources import resources
from penstock.control.admin.rollout.models import NodeModel
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.fleet.node_drain import drain_node, forget_node
from penstock.control.store.store import Author
from penstock.control.supervision.clock import Clock


def nodes_api(cluster: ClusterStore, clock: Clock) -> APIRouter:
    """What operators may ask of a node."""
    router = resources("/nodes", tag="cluster")

    async def drained(node_id: str, who: str, *, draining: bool) -> NodeModel:
        author = Author(who, f"{'drain' if draining else 'use'} node {node_id}")
        node = await drain_node(cluster, node_id, author, draining=draining)
        return NodeModel.of(node, cluster.liveness.nodes.get(node.id))

    @router.put("/{node_id}/drain")
    async def drain(node_id: str, caller: Operator) -> NodeModel:
        """The node gets no replicas any more; those that it has are moved, replacements first."""
        return await drained(node_id, caller.name, draining=True)

    @router.delete("/{node_id}/drain")
    async def undo_drain(node_id: str, caller: Operator) -> NodeModel:
        """The node may have replicas again."""
        return await drained(node_id, caller.name, draining=False)

    @router.delete("/{node_id}", status_code=204)
    async def forget(node_id: str, caller: Operator) -> None:
        """The node and its replicas are shown no longer: its machine is gone for good. Refused as
        long as there is a sign of life of it."""
        await forget_node(cluster, node_id, Author(caller.name, f"delete node {node_id}"), clock)

    return router
