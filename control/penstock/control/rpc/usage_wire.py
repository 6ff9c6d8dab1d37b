"""Usage: messages of routes.proto to values of `state/` and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.control.declared.messages import value_of
from penstock.control.rpc.wire import milliseconds
from penstock.control.state.tenancy.day_holds import Amount, GatewayDay, Hold, Share
from penstock.control.state.tenancy.usage import (
    MOST,
    Counts,
    DaySums,
    Holder,
    UsageKey,
    midnight_after,
)
from penstock.v1 import routes_pb2


def usage_rows(message: routes_pb2.GatewayReport) -> Iterator[tuple[UsageKey, Counts]]:
    """What a gateway has counted since its instance began."""
    for row in message.usage:
        yield (
            UsageKey(row.tenant, row.key_id, row.deployment, row.adapter),
            value_of(Counts, row),
        )


def day_holds(message: routes_pb2.GatewayReport) -> Iterator[Hold]:
    """What a gateway has of limits of a day."""
    for hold in message.holds:
        yield Hold(
            Holder(hold.tenant, hold.key_id, hold.deployment),
            Amount(min(hold.used_tokens, MOST), min(hold.used_nanousd, MOST)),
            Amount(min(hold.reserved_tokens, MOST), min(hold.reserved_nanousd, MOST)),
        )


class DayNews:
    """What one gateway is told of a day's sums during one call: each time what has changed."""

    def __init__(self) -> None:
        self._told: DaySums | None = None
        self._shares: Mapping[Holder, Share] = {}

    def since(self, day: GatewayDay) -> routes_pb2.GatewayReportReply:
        """What it was not told before of sums, and of what is its own in them."""
        sums, own = day.sums, day.shares
        told, self._told = self._told, sums
        known, self._shares = self._shares, own
        whole = told is None or told.day != sums.day
        if whole:  # it forgets what it was told before
            known = {}
        before = {} if told is None or whole else told.by_key
        spent = {} if told is None or whole else told.by_deployment
        return routes_pb2.GatewayReportReply(
            as_of_ms=milliseconds(sums.as_of),
            day_ends_at_ms=midnight_after(sums.day),
            whole=whole,
            usage=(
                routes_pb2.UsageReport(tenant=of.tenant, key_id=of.key_id, **counts._asdict())
                for of, counts in (sums.by_key.items() if sums.by_key is not before else ())
                if counts != before.get(of)
            ),
            spent=(
                routes_pb2.UsageReport(deployment=name, **counts._asdict())
                for name, counts in sums.by_deployment.items()
                if counts != spent.get(name)
            ),
            holds=(
                _hold(of, own.get(of, Share(None, Amount())))
                for of in known.keys() | own.keys()
                if known.get(of) != own.get(of)
            ),
            stored=day.stored,
        )


def _hold(of: Holder, share: Share) -> routes_pb2.DayHold:
    used = share.used
    return routes_pb2.DayHold(
        tenant=of.tenant,
        key_id=of.key_id,
        deployment=of.deployment,
        used_tokens=used and used.tokens,
        used_nanousd=used and used.nanousd,
        reserved_tokens=share.reserved.tokens,
        reserved_nanousd=share.reserved.nanousd,
    )
