"""Which Penstock answers here, and whether it is in command."""

from __future__ import annotations

from fastapi import APIRouter

from penstock.control.admin.auth import Viewer
from penstock.control.admin.resources import resources
from penstock.control.admin.services import AdminServices
from penstock.control.admin.version_models import LiveModel, RefusedModel, VersionModel


def live_api(services: AdminServices, version: str) -> APIRouter:
    """For whoever watches the process: no token is asked for."""
    router = APIRouter(tags=["head"])

    @router.get("/livez")
    async def livez() -> LiveModel:
        """The head runs."""
        return LiveModel(version=version, snapshot_version=services.routes.current().version)

    return router


def version_api(services: AdminServices, version: str) -> APIRouter:
    """For whoever has a token."""
    router = resources(tag="head")

    @router.get("/version")
    async def get_version(_: Viewer) -> VersionModel:
        """Which Penstock this is, whether it is in command, and which routes it tells."""
        view = services.cluster.view()
        return VersionModel(
            version=version,
            snapshot_version=services.routes.current().version,
            cluster=str(services.cluster.stamp),
            held=view.held,
            routes_withheld=services.routes.withheld,
            refused=[
                RefusedModel(who=who, why=it.why, since=it.since)
                for who, it in sorted(services.cluster.liveness.refused.items())
            ],
            unreadable=list(view.unreadable),
        )

    return router
