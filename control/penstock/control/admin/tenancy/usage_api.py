"""What tenants used."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query

from penstock.control.admin.auth import Viewer
from penstock.control.admin.resources import resources
from penstock.control.admin.tenancy.tenant_models import UsageModel
from penstock.control.errors import InvalidInput
from penstock.control.managers.tenancy.tenants import TenantManager
from penstock.control.store.usage import UsageStore
from penstock.control.supervision.clock import Clock

SHOWN = timedelta(days=29)  # before today, where nobody says since when
MOST = timedelta(days=366)

First = Annotated[
    date | None, Query(alias="from", description="a day of UTC; 29 days before `to` without")
]
Last = Annotated[
    date | None, Query(alias="to", description="a day of UTC, included; today without")
]


def usage_api(store: UsageStore, tenants: TenantManager, clock: Clock) -> APIRouter:
    """Read by anybody with a token; a second behind what gateways reported."""
    router = resources(tag="tenants")

    @router.get("/usage")
    async def get_usage(_: Viewer, first: First = None, last: Last = None) -> UsageModel:
        """What all used, deleted tenants and requests without a key included."""
        days = _days(first, last, clock.now())
        return UsageModel.of(*days, await store.usage(*days))

    @router.get("/tenants/{tenant_id}/usage")
    async def get_tenant_usage(
        tenant_id: str, _: Viewer, first: First = None, last: Last = None
    ) -> UsageModel:
        """What a tenant used; also of one that was deleted."""
        days = _days(first, last, clock.now())
        rows = await store.usage(*days, tenant_id)
        if not rows:
            tenants.tenancy.tenant(tenant_id)
        return UsageModel.of(*days, rows)

    return router


def _days(first: date | None, last: date | None, now: datetime) -> tuple[date, date]:
    last = last or now.astimezone(UTC).date()
    first = first or max(last, date.min + SHOWN) - SHOWN
    if first > last:
        raise InvalidInput(f"from is {first}, after to, which is {last}: swap them")
    if last - first > MOST:
        raise InvalidInput(f"from {first} to {last} is more than {MOST.days} days: ask for fewer")
    return first, last
