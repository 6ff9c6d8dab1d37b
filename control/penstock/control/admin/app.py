"""The FastAPI app: the API, its documents, and errors to problem bodies."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI
from fastapi_offline import FastAPIOffline
from pydantic import BaseModel

from penstock.control.admin.deployments_api import DeploymentsApi
from penstock.control.admin.lists_api import lists_api
from penstock.control.admin.problems import MEDIA_TYPE, Problem, install_problems
from penstock.control.managers.clock import Clock
from penstock.control.managers.keeper import Keeper
from penstock.control.managers.routes import RouteManager


class VersionModel(BaseModel):
    """What answers here."""

    version: str
    snapshot_version: int


def admin_app(keeper: Keeper, routes: RouteManager, clock: Clock, version: str) -> FastAPI:
    """The admin API over the head's state. Its documents at /docs load nothing from elsewhere."""
    app: FastAPI = FastAPIOffline(
        title="Penstock admin",
        version=version,
        description="Desired state of deployments, and what came of it.",
        redoc_url=None,
    )
    install_problems(app)
    api = APIRouter(
        prefix="/admin/v1",
        responses={
            "4XX": {"description": "Refused", "content": {MEDIA_TYPE: {}}, "model": Problem}
        },
    )
    api.include_router(DeploymentsApi(keeper, clock).router())
    api.include_router(lists_api(keeper.cluster))
    app.include_router(api)

    @app.get("/livez", tags=["head"])
    async def livez() -> VersionModel:
        """The head runs."""
        return VersionModel(version=version, snapshot_version=routes.current().version)

    @app.get("/admin/v1/version", tags=["head"])
    async def get_version() -> VersionModel:
        """Which Penstock this is, and which routes it tells."""
        return VersionModel(version=version, snapshot_version=routes.current().version)

    return app
