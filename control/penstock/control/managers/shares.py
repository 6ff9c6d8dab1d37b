"""Follows what gateways are asked for, and tells them their shares of tenants' limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from penstock.control.managers.keeper import Keeper
from penstock.control.state.cluster import ClusterView, Gateway, GatewayState
from penstock.control.state.shares import Demand, joined, next_shares, work
from penstock.control.state.usage import Counts, added
from penstock.control.supervision.clock import Clock

# A head that has just begun waits for the gateways that it remembers.
EXPECTED_FOR = timedelta(seconds=5)
# Each telling is a snapshot for everybody; gateways that come or go are told of at once.
TELL_EVERY = timedelta(seconds=5)
_GONE = (GatewayState.STOPPED, GatewayState.BACKOFF, GatewayState.SILENT)


class ShareManager:
    """Notes what came, and makes shares of it when asked to. One event loop."""

    def __init__(self, keeper: Keeper, clock: Clock) -> None:
        self._keeper = keeper
        self._clock = clock
        self._since = self._looked_at = clock.monotonic()
        self._told_at = 0.0
        self._came: dict[tuple[str, str], Counts] = {}  # by tenant and gateway, since `tell`
        self._demands: Mapping[str, Mapping[str, Demand]] = {}  # by tenant and gateway

    def note(self, gateway_id: str, tenant: str, came: Counts) -> None:
        """So much more was counted by a gateway."""
        if tenant:
            name = (tenant, gateway_id)
            self._came[name] = added(came, self._came.get(name, Counts()))

    async def tell(self) -> None:
        """Puts the shares into the view, where they moved."""
        view = self._keeper.cluster.view()
        told, members = view.tenancy.shares, self._members(view)
        now = self._clock.monotonic()
        seconds, self._looked_at = now - self._looked_at, now
        if seconds <= 0:
            return
        busy = self._demands.keys() | {tenant for tenant, _ in self._came}
        demands = {
            tenant: joined(self._after(seconds, tenant, told.members), told.members, members)
            for tenant in busy & view.tenancy.tenants.keys()
        }
        self._demands = {tenant: of for tenant, of in demands.items() if any(work(of).values())}
        self._came = {}
        if set(told.members) == members and now - self._told_at < TELL_EVERY.total_seconds():
            return
        shares = next_shares(told, members, self._demands)
        if shares is told:
            return
        self._told_at = now

        def step(view: ClusterView) -> ClusterView:
            return replace(view, tenancy=replace(view.tenancy, shares=shares))

        await self._keeper.observe(step, "shares of tenants' limits moved")

    def _after(self, seconds: float, tenant: str, members: tuple[str, ...]) -> dict[str, Demand]:
        known = self._demands.get(tenant, {})
        found = {}
        for name in members:
            came = self._came.get((tenant, name), Counts())
            demand = known.get(name, Demand())
            found[name] = demand.after(seconds, came.requests, came.rejected, came.tokens)
        return found

    def _members(self, view: ClusterView) -> frozenset[str]:
        """Gateways that take requests: of those that report, who does not drain."""
        members = {g.id for g in view.gateways.values() if _takes_requests(g)}
        if self._clock.monotonic() - self._since < EXPECTED_FOR.total_seconds():
            members |= set(view.tenancy.shares.members)
        return frozenset(members)


def _takes_requests(gateway: Gateway) -> bool:
    report = gateway.report
    alive = gateway.reporting and gateway.state not in _GONE
    return alive and report is not None and not report.draining
