"""The latest report of each gateway, local or remote, put into the view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.fleet.gateway_signs import GatewaySigns
from penstock.control.managers.routing.traffic import Traffic
from penstock.control.state.cluster import ClusterView, Gateway, GatewayReport, GatewayState
from penstock.control.state.routing.suspects import Suspect, Suspects, merged
from penstock.control.state.stamp import Stamp
from penstock.control.supervision.clock import Clock


class GatewayReports:
    """Takes in what gateways count."""

    def __init__(
        self,
        cluster: ClusterStore,
        signs: GatewaySigns,
        clock: Clock,
        traffic: Traffic | None = None,
    ) -> None:
        self._cluster = cluster
        self._signs = signs
        self._clock = clock
        self._traffic = traffic or Traffic()  # what a head shows of it

    async def observe_stamp(self, gateway_id: str, stamp: Stamp) -> None:
        """A gateway tells by whose routes it goes. Raises NotAdmitted for a stranger."""
        await self._cluster.observe_stamp(f"gateway {gateway_id}", stamp)

    async def take(
        self, gateway_id: str, report: GatewayReport, suspects: Sequence[Suspect] = ()
    ) -> None:
        """Replaces what this gateway reported before, and adds to what is suspected."""
        self._signs.reported(gateway_id, report)
        now, live = self._clock.steady(), self._cluster.liveness
        self._traffic.observe(gateway_id, report.instance, report.deployments, now)

        def step(view: ClusterView) -> ClusterView:
            live.gateways[gateway_id] = now
            known = view.gateways.get(gateway_id) or Gateway(gateway_id, GatewayState.REMOTE)
            if known.state is GatewayState.SILENT:
                known = replace(known, state=GatewayState.REMOTE)
            view = view.with_gateway(replace(known, report=report, reporting=True))
            return with_suspects(view, merged(view.suspects, suspects))

        await self._cluster.observe(step, f"report of gateway {gateway_id}")
        view = self._cluster.view()
        self._traffic.keep(view.gateways, view.deployments)


def with_suspects(view: ClusterView, suspects: Suspects) -> ClusterView:
    """The view with these; itself where they are those that it has."""
    return view if suspects is view.suspects else replace(view, suspects=suspects)
