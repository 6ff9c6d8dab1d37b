"""What a deployment spent."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import Annotated

from fastapi import APIRouter, Query

from penstock.control.admin.auth import Viewer
from penstock.control.admin.resources import resources
from penstock.control.admin.tenancy.spend_models import SpendModel
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.store.usage import UsageStore
from penstock.control.supervision.clock import Clock

MOST_DAYS = 366

Days = Annotated[int, Query(ge=1, le=MOST_DAYS, description="that are shown, today included")]


def spend_api(cluster: ClusterStore, store: UsageStore, clock: Clock) -> APIRouter:
    """Read by anybody with a token; a second behind what gateways reported."""
    router = resources("/deployments", tag="deployments")

    @router.get("/{name}/spend")
    async def get_spend(name: str, _: Viewer, days: Days = 30) -> SpendModel:
        """What it spent today and on the days before, against its budgets. Deployments of the same
        name before it are counted in."""
        view = cluster.view()
        deployment = view.deployment(name)
        today = clock.now().astimezone(UTC).date()
        rows = await store.spent(today - timedelta(days=days - 1), today, name)
        return SpendModel.of(view, deployment, today, rows)

    return router
