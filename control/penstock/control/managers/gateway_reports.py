"""The latest report of each gateway, local or remote, put into the view."""

from __future__ import annotations

from dataclasses import replace

from penstock.control.managers.keeper import Keeper
from penstock.control.state.cluster import ClusterView, Gateway, GatewayReport, GatewayState


class GatewayReports:
    """Takes in what gateways count."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    async def take(self, gateway_id: str, report: GatewayReport) -> None:
        """Replaces what this gateway reported before."""

        def step(view: ClusterView) -> ClusterView:
            known = view.gateways.get(gateway_id) or Gateway(gateway_id, GatewayState.REMOTE)
            return view.with_gateway(replace(known, report=report))

        await self._keeper.observe(step, f"report of gateway {gateway_id}")
