"""The latest report of each gateway, local or remote, put into the view."""

from __future__ import annotations

from dataclasses import replace

from penstock.control.managers.gateway_signs import GatewaySigns
from penstock.control.managers.keeper import Keeper
from penstock.control.state.cluster import ClusterView, Gateway, GatewayReport, GatewayState


class GatewayReports:
    """Takes in what gateways count."""

    def __init__(self, keeper: Keeper, signs: GatewaySigns) -> None:
        self._keeper = keeper
        self._signs = signs

    async def take(self, gateway_id: str, report: GatewayReport) -> None:
        """Replaces what this gateway reported before."""
        self._signs.reported(gateway_id, report)

        def step(view: ClusterView) -> ClusterView:
            known = view.gateways.get(gateway_id) or Gateway(gateway_id, GatewayState.REMOTE)
            return view.with_gateway(replace(known, report=report))

        await self._keeper.observe(step, f"report of gateway {gateway_id}")
