"""What can be done to the gateway that this head runs."""

from __future__ import annotations

from typing import Protocol

from fastapi import APIRouter, Response

from penstock.control.admin.auth import Viewer
from penstock.control.admin.resources import resources
from penstock.control.admin.rollout.models import GatewayModel
from penstock.control.admin.writes import Change, tagged
from penstock.control.errors import Code, NotFound
from penstock.control.managers.cluster import Cluster
from penstock.control.managers.write import Write
from penstock.control.state.cluster import Gateway, some_of


class GatewayReplacer(Protocol):
    """Looks after the local gateway."""

    async def replace(self, gateway_id: str, write: Write) -> Gateway:
        """A dry run gives the present one. Raises `unknown-gateway`, `revision-mismatch` and
        `gateway-not-replaced`."""


def gateways_api(cluster: Cluster, gateways: GatewayReplacer | None) -> APIRouter:
    """One gateway, and its verbs; None: this head runs none."""
    router = resources("/gateways", tag="cluster")

    @router.get("/{gateway_id}")
    async def get_gateway(gateway_id: str, _: Viewer, response: Response) -> GatewayModel:
        """One gateway."""
        known = cluster.view().gateways
        if gateway_id not in known:
            named = f"no gateway {gateway_id!r}: there are {some_of(known)}"
            raise NotFound(named, Code.UNKNOWN_GATEWAY)
        tagged(response, known[gateway_id])
        return GatewayModel.of(known[gateway_id])

    @router.post("/{gateway_id}/replace")
    async def replace_gateway(gateway_id: str, write: Change) -> GatewayModel:
        """Starts another gateway on the same port and answers with it once it serves. The old one
        then takes no new connections, and ends when its last client has."""
        if gateways is None:
            raise NotFound(f"no gateway {gateway_id!r}: this head runs none", Code.UNKNOWN_GATEWAY)
        made = await gateways.replace(gateway_id, write)
        write.tell(made)
        return GatewayModel.of(made)

    return router
