"""The UsageStore protocol: what was counted, and what was seen of whom, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Protocol

from penstock.control.state.tenancy.spend import SpendRow
from penstock.control.state.tenancy.usage import Counts, Holder, Reading, UsageRow


class UsageStore(Protocol):
    """Usage that survives the death of the process. Recording a reading again changes nothing."""

    async def record(self, readings: Sequence[Reading]) -> None:
        """Adds what counts have grown by since they were last recorded to the readings' days, all
        or nothing. Raises StoreUnavailable."""

    async def usage(self, first: date, last: date, tenant: str | None = None) -> list[UsageRow]:
        """Rows from one day to another, both included, in their order; of one tenant, or all."""

    async def spent(self, first: date, last: date, deployment: str | None = None) -> list[SpendRow]:
        """What each deployment had on each of these days, both included, in their order; of one
        deployment, or all. Days without any are left out."""

    async def sums_of(self, day: date) -> Mapping[Holder, Counts]:
        """What each key of each tenant had on a day. Raises StoreUnavailable."""
