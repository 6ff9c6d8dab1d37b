"""What can be done to the gateway that this head runs."""

from __future__ import annotations

from typing import Protocol

from fastapi import APIRouter

from penstock.control.admin.auth import Operator
from penstock.control.admin.resources import resources
from penstock.control.admin.rollout.models import GatewayModel
from penstock.control.errors import Code, NotFound
from penstock.control.state.cluster import Gateway


class GatewayReplacer(Protocol):
    """Looks after the local gateway."""

    async def replace(self, gateway_id: str) -> Gateway:
        """Raises `unknown-gateway` and `gateway-not-replaced`."""


def gateways_api(gateways: GatewayReplacer | None) -> APIRouter:
    """The verbs of gateways; None: this head runs none."""
    router = resources("/gateways", tag="cluster")

    @router.post("/{gateway_id}/replace")
    async def replace_gateway(gateway_id: str, _: Operator) -> GatewayModel:
        """Starts another gateway on the same port and answers with it once it serves. The old one
        then takes no new connections, and ends when its last client has."""
        if gateways is None:
            raise NotFound(f"no gateway {gateway_id!r}: this head runs none", Code.UNKNOWN_GATEWAY)
        return GatewayModel.of(await gateways.replace(gateway_id))

    return router
