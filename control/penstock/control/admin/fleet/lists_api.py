"""Replicas, nodes and gateways, as the head knows them."""

from __future__ import annotations

from fastapi import APIRouter, Response

from penstock.control.admin.auth import Viewer
from penstock.control.admin.parameters import Paged
from penstock.control.admin.resources import resources
from penstock.control.admin.rollout.models import GatewayModel, NodeModel, ReplicaModel
from penstock.control.admin.writes import tagged
from penstock.control.managers.cluster import Cluster
from penstock.control.managers.fleet.node_drain import node_in
from penstock.control.state.routing.doubts import doubts_in


def lists_api(cluster: Cluster) -> APIRouter:
    """The lists that are only read."""
    router = resources(tag="cluster")

    @router.get("/replicas")
    async def list_replicas(
        _: Viewer, page: Paged, deployment: str | None = None
    ) -> list[ReplicaModel]:
        """Replicas by id, of one deployment or of all."""
        view = cluster.view()
        doubts = doubts_in(view)
        found = {n: r for n, r in view.replicas.items() if deployment in (None, r.deployment)}
        taken = cluster.liveness.known.memory_of_replicas()
        return [
            ReplicaModel.of(view, r, doubts.get(r.id, ()), taken.get(r.id)) for r in page.of(found)
        ]

    @router.get("/nodes")
    async def list_nodes(_: Viewer, page: Paged) -> list[NodeModel]:
        """Node agents, by id."""
        observed = cluster.liveness.nodes
        return [NodeModel.of(n, observed.get(n.id)) for n in page.of(cluster.view().nodes)]

    @router.get("/nodes/{node_id}")
    async def get_node(node_id: str, _: Viewer, response: Response) -> NodeModel:
        """One node agent."""
        node = node_in(cluster.view(), node_id)
        tagged(response, node)
        return NodeModel.of(node, cluster.liveness.nodes.get(node.id))

    @router.get("/gateways")
    async def list_gateways(_: Viewer, page: Paged) -> list[GatewayModel]:
        """Gateways, by id."""
        return [GatewayModel.of(g) for g in page.of(cluster.view().gateways)]

    return router
