"""Replicas, nodes and gateways, as the head knows them."""

from __future__ import annotations

from fastapi import APIRouter

from penstock.control.admin.auth import Viewer
from penstock.control.admin.models import GatewayModel, NodeModel, ReplicaModel
from penstock.control.state.cluster import Cluster
from penstock.control.state.doubts import doubts_in


def lists_api(cluster: Cluster) -> APIRouter:
    """The lists that are only read."""
    router = APIRouter(tags=["cluster"])

    @router.get("/replicas")
    async def list_replicas(_: Viewer, deployment: str | None = None) -> list[ReplicaModel]:
        """All replicas by id, or those of one deployment."""
        view = cluster.view()
        doubts = doubts_in(view)
        return [
            ReplicaModel.of(view, r, doubts.get(r.id, ()))
            for _, r in sorted(view.replicas.items())
            if deployment in (None, r.deployment)
        ]

    @router.get("/nodes")
    async def list_nodes(_: Viewer) -> list[NodeModel]:
        """All node agents, by id."""
        heard = cluster.liveness.nodes
        nodes = sorted(cluster.view().nodes.items())
        return [NodeModel.of(n, heard.get(n.id)) for _, n in nodes]

    @router.get("/gateways")
    async def list_gateways(_: Viewer) -> list[GatewayModel]:
        """All gateways, by id."""
        return [GatewayModel.of(g) for _, g in sorted(cluster.view().gateways.items())]

    return router
