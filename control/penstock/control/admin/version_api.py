"""Which Penstock answers here, and whether it is in command."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field

from penstock.control.admin.auth import Viewer
from penstock.control.admin.services import AdminServices


class LiveModel(BaseModel):
    """What anybody may know."""

    version: str
    snapshot_version: int = Field(description="of the routes that gateways are told")


class RefusedModel(BaseModel):
    """Who is not let in."""

    who: str = Field(description="kind, id and address")
    why: str
    since: datetime


class VersionModel(LiveModel):
    """What answers here."""

    cluster: str = Field(description="id, epoch and revision of the store")
    held: str = Field(description="why this head holds still; empty: it is in command")
    routes_withheld: str = Field(description="why gateways are not told the newest routes")
    refused: list[RefusedModel] = Field(
        description="node agents and gateways that ask to be let in, and are not"
    )
    unreadable: list[str] = Field(description="documents of the store that were skipped")


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
    router = APIRouter(tags=["head"])

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
