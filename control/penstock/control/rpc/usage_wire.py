"""Usage: messages of routes.proto to values of `state/` and back."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.control.rpc.wire import milliseconds
from penstock.control.state.usage import Counts, DaySums, UsageKey, midnight_after
from penstock.v1 import routes_pb2


def usage_rows(message: routes_pb2.GatewayReport) -> Iterator[tuple[UsageKey, Counts]]:
    """What a gateway has counted since its instance began."""
    for row in message.usage:
        yield (
            UsageKey(row.tenant, row.key_id, row.deployment, row.adapter),
            Counts(
                row.requests,
                row.rejected,
                row.prompt_tokens,
                row.completion_tokens,
                row.cached_tokens,
                row.cost_nanousd,
            ),
        )


class DayNews:
    """What one gateway is told of a day's sums during one call: each time what has changed."""

    def __init__(self) -> None:
        self._told: DaySums | None = None

    def since(self, sums: DaySums | None) -> routes_pb2.GatewayReportReply:
        """What it was not told before."""
        if sums is None:
            return routes_pb2.GatewayReportReply()
        told, self._told = self._told, sums
        whole = told is None or told.day != sums.day
        before = {} if told is None or whole else told.by_key
        return routes_pb2.GatewayReportReply(
            as_of_ms=milliseconds(sums.as_of),
            day_ends_at_ms=midnight_after(sums.day),
            whole=whole,
            usage=(
                routes_pb2.UsageReport(tenant=of.tenant, key_id=of.key_id, **counts._asdict())
                for of, counts in (sums.by_key.items() if sums.by_key is not before else ())
                if counts != before.get(of)
            ),
        )
