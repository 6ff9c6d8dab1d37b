"""Follows what gateways are asked for, and tells them their shares of tenants' limits."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta

from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.state.cluster import ClusterView, GatewayReport, GatewayState
from penstock.control.state.tenancy.demand import Demand, joined
from penstock.control.state.tenancy.shares import Shares, next_shares
from penstock.control.state.tenancy.stream_shares import (
    Holdings,
    StreamShares,
    next_stream_shares,
    streams_of,
)
from penstock.control.state.tenancy.usage import Counts, added
from penstock.control.supervision.clock import Clock

# A head that has just begun waits for the gateways that it remembers.
EXPECTED_FOR = timedelta(seconds=5)
# Each telling is a snapshot for everybody; gateways that come or go are told of at once.
TELL_EVERY = timedelta(seconds=5)
# Tellings that are kept for gateways that have not taken in the one after it.
TELLINGS = 64
_GONE = (GatewayState.STOPPED, GatewayState.BACKOFF, GatewayState.SILENT)


class ShareManager:
    """Notes what came, and makes shares of it when asked to. One event loop."""

    def __init__(self, cluster: ClusterStore, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._since = self._looked_at = clock.monotonic()
        self._judged_at = self._since
        self._came: dict[tuple[str, str], Counts] = {}  # by tenant and gateway, since `tell`
        self._demands: Mapping[str, Mapping[str, Demand]] = {}  # by tenant and gateway
        # What was told before, and the last version of routes that went by it.
        self._earlier: deque[tuple[int, Shares]] = deque(maxlen=TELLINGS)

    def note(self, gateway_id: str, tenant: str, came: Counts) -> None:
        """So much more was counted by a gateway."""
        if tenant:
            name = (tenant, gateway_id)
            self._came[name] = added(came, self._came.get(name, Counts()))

    async def tell(self) -> None:
        """Puts the shares into the view, where they moved."""
        view = self._cluster.view()
        told, members = view.tenancy.shares, self._members(view)
        now = self._clock.monotonic()
        seconds, self._looked_at = now - self._looked_at, now
        if seconds <= 0:
            return
        self._follow(view, members, seconds)
        if not members:  # the last shares hold
            return
        if told.members == members and now - self._judged_at < TELL_EVERY.total_seconds():
            return
        self._judged_at = now
        shares = Shares(
            members, next_shares(told, members, self._demands), self._streams(view, members)
        )
        if shares == told:
            return
        self._earlier.append((view.published.version, told))

        def step(view: ClusterView) -> ClusterView:
            return replace(view, tenancy=replace(view.tenancy, shares=shares))

        await self._cluster.observe(step, "shares of tenants' limits moved")

    def _follow(self, view: ClusterView, members: tuple[str, ...], seconds: float) -> None:
        """Takes what came since into demand."""
        before, reports = view.tenancy.shares.members, dict(_reports(view))
        running = {tenant for report in reports.values() for tenant in report.streams}
        busy = self._demands.keys() | {tenant for tenant, _ in self._came} | running
        demands = {
            tenant: self._after(seconds, tenant, before, reports)
            for tenant in busy & view.tenancy.tenants.keys()
        }
        if before != members:
            demands = {name: joined(of, before, members) for name, of in demands.items()}
        self._demands = {
            tenant: of for tenant, of in demands.items() if any(of[name] != Demand() for name in of)
        }
        self._came = {}

    def _after(
        self,
        seconds: float,
        tenant: str,
        members: tuple[str, ...],
        reports: Mapping[str, GatewayReport],
    ) -> dict[str, Demand]:
        known = self._demands.get(tenant, {})
        found = {}
        for name in members:
            came = self._came.get((tenant, name), Counts())
            runs = reports[name].streams.get(tenant, 0) if name in reports else 0
            demand = known.get(name) or Demand(under_way=runs)  # of a head that has just begun
            found[name] = demand.after(seconds, came.requests, came.rejected, came.tokens, runs)
        return found

    def _streams(self, view: ClusterView, members: tuple[str, ...]) -> dict[str, StreamShares]:
        told, tenants = view.tenancy.shares, view.tenancy.tenants.values()
        limits = {each.id: each.spec.max_streams for each in tenants if each.spec.max_streams}
        reports = dict(_reports(view))
        stale = list(self._stale(reports))

        def holdings(tenant: str) -> Holdings:
            runs = {name: report.streams.get(tenant, 0) for name, report in reports.items()}
            return Holdings(runs, _most(stale, tenant, limits[tenant]))

        return next_stream_shares(
            told.streams, told.members, members, limits, self._demands, holdings
        )

    def _stale(self, reports: Mapping[str, GatewayReport]) -> Iterator[tuple[str, Shares]]:
        """Gateways that may still go by what was told before, and that."""
        for version, told in self._earlier:
            for name in told.members:
                if name in reports and reports[name].snapshot_version <= version:
                    yield name, told

    def _members(self, view: ClusterView) -> tuple[str, ...]:
        """Gateways that take requests, sorted: of those that report, who does not drain."""
        members = {name for name, report in _reports(view) if not report.draining}
        if self._clock.monotonic() - self._since < EXPECTED_FOR.total_seconds():
            members |= set(view.tenancy.shares.members)
        return tuple(sorted(members))


def reporting(view: ClusterView) -> frozenset[str]:
    """Gateways that live and say so."""
    return frozenset(name for name, _ in _reports(view))


def _reports(view: ClusterView) -> Iterator[tuple[str, GatewayReport]]:
    """What gateways that live say."""
    for gateway in view.gateways.values():
        if gateway.report is not None and gateway.reporting and gateway.state not in _GONE:
            yield gateway.id, gateway.report


def _most(stale: Iterable[tuple[str, Shares]], tenant: str, limit: int) -> dict[str, int]:
    """What each of them may have under way by any of that."""
    most: dict[str, int] = {}
    for name, told in stale:
        part = streams_of(told.streams.get(tenant), told.members, name, limit)
        most[name] = max(most.get(name, 0), part)
    return most
