"""What all gateways together have used and reserved today, as they are told it.

What is told at once was so at once: the sums have what was stored until a moment, and of each
gateway what it had said until then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime

from penstock.control.errors import StoreUnavailable
from penstock.control.state.tenancy.day_holds import (
    Amount,
    GatewayDay,
    GatewayHolds,
    Hold,
    reserved_by_all,
    shares_of,
)
from penstock.control.state.tenancy.usage import Counts, DaySums, Holder
from penstock.control.store.usage import UsageStore
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Taken:
    """What gateways had said of limits of a day until then."""

    at: datetime
    holds: Mapping[str, GatewayHolds] = field(default_factory=dict)  # by gateway


class DayManager:
    """Reads the sums of a day, and has news for whoever waits for them. One event loop."""

    def __init__(self, store: UsageStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._taken: dict[str, GatewayHolds] = {}
        self._stored = Taken(clock.now())
        self._unread = True  # more was stored since
        self._holds: Mapping[str, GatewayHolds] = {}  # with the sums
        self._reserved: Mapping[Holder, Amount] = {}
        self._sums: DaySums | None = None
        self._news = asyncio.Event()

    @property
    def sums(self) -> DaySums | None:
        """What all gateways counted today, as it was stored a second ago; none where it was never
        read."""
        return self._sums

    @property
    def news(self) -> asyncio.Event:
        """Set once, when there are other sums."""
        return self._news

    def of(self, gateway_id: str, instance: str) -> GatewayDay | None:
        """What a gateway is told; none where nothing was read yet."""
        if self._sums is None:
            return None
        told = self._holds.get(gateway_id, GatewayHolds())
        own = told if told.instance == instance else GatewayHolds(reserved=told.reserved)
        return GatewayDay(self._sums, shares_of(own, self._reserved), own.report)

    def by_tenant(self) -> Mapping[str, Counts]:
        """What tenants have had today."""
        return self._sums.by_tenant() if self._sums and self._sums.day == self._today() else {}

    def take(self, gateway_id: str, instance: str, holds: Iterable[Hold], report: int) -> None:
        """A gateway's report of this number says so."""
        before = self._taken.get(gateway_id, GatewayHolds())
        self._taken[gateway_id] = before.after(instance, holds, report)

    def taken(self, gateways: Collection[str]) -> Taken:
        """What was taken until now. What others than these had reserved is free again."""
        self._taken = {name: held for name, held in self._taken.items() if name in gateways}
        return Taken(self._clock.now(), dict(self._taken))

    def stored(self, taken: Taken, *, news: bool) -> None:
        """What was counted until then is in the store; whether anything was."""
        self._stored, self._unread = taken, self._unread or news

    async def read(self) -> None:
        """What was read last goes on to count where it cannot be read now."""
        today, stored, sums = self._today(), self._stored, self._sums
        try:
            if self._unread or sums is None or sums.day != today:
                self._unread = False
                spent = await self._store.spent(today, today)
                by_deployment = {row.deployment: row.spend.counts for row in spent}
                sums = DaySums(today, stored.at, await self._store.sums_of(today), by_deployment)
        except StoreUnavailable as error:
            self._unread = True
            log.error("usage not read", extra={"error": str(error)})
            return
        self._sums = replace(sums, as_of=stored.at)
        self._holds, self._reserved = stored.holds, reserved_by_all(stored.holds.values())
        told, self._news = self._news, asyncio.Event()
        told.set()

    def _today(self) -> date:
        return self._clock.now().astimezone(UTC).date()
