"""The FastAPI app: the API, its documents, and errors to problem bodies."""

from __future__ import annotations

from collections.abc import Collection

from fastapi import APIRouter, FastAPI
from fastapi_offline import FastAPIOffline
from pydantic import BaseModel, Field

from penstock.control.admin.audit_api import audit_api
from penstock.control.admin.auth import Viewer
from penstock.control.admin.deployments_api import DeploymentsApi
from penstock.control.admin.documents import with_problems
from penstock.control.admin.doors import Doors
from penstock.control.admin.gateways_api import gateways_api
from penstock.control.admin.lists_api import lists_api
from penstock.control.admin.nodes_api import nodes_api
from penstock.control.admin.problems import install_problems
from penstock.control.admin.quarantine_api import quarantine_api
from penstock.control.admin.services import AdminServices
from penstock.control.admin.tokens_api import tokens_api
from penstock.control.managers.quarantine import Quarantine


class VersionModel(BaseModel):
    """What answers here."""

    version: str
    snapshot_version: int
    cluster: str = Field(description="id, epoch and revision of the store")
    held: str = Field(description="why this head holds still; empty: it is in command")
    routes_withheld: str = Field(description="why gateways are not told the newest routes")
    unreadable: list[str] = Field(description="documents of the store that were skipped")


def admin_app(services: AdminServices, version: str, *, hosts: Collection[str] = ()) -> FastAPI:
    """The admin API over the head's state. Its documents at /docs load nothing from elsewhere.

    `hosts`: names that it answers to, beside localhost and its own addresses.
    """
    app: FastAPI = FastAPIOffline(
        title="Penstock admin",
        version=version,
        description="Desired state of deployments, and what came of it.",
        redoc_url=None,
    )
    install_problems(app)
    app.add_middleware(Doors, tokens=services.tokens, hosts=hosts)
    api = _resources(services)
    _tell_version(app, api, services, version)
    app.include_router(api)
    made = app.openapi
    app.openapi = lambda: with_problems(made())  # type: ignore[method-assign]  # FastAPI's own way
    return app


def _resources(services: AdminServices) -> APIRouter:
    """Everything below /admin/v1."""
    api = APIRouter(
        prefix="/admin/v1",
        responses={"4XX": {"description": "Refused"}, "5XX": {"description": "Failed"}},
    )
    api.include_router(DeploymentsApi(services.keeper, services.clock).router())
    api.include_router(lists_api(services.keeper.cluster))
    api.include_router(nodes_api(services.keeper))
    api.include_router(gateways_api(services.gateways))
    api.include_router(quarantine_api(Quarantine(services.keeper)))
    api.include_router(audit_api(services.store))
    api.include_router(tokens_api(services.tokens))
    return api


def _tell_version(app: FastAPI, api: APIRouter, services: AdminServices, version: str) -> None:
    def told() -> VersionModel:
        view = services.keeper.cluster.view()
        return VersionModel(
            version=version,
            snapshot_version=services.routes.current().version,
            cluster=str(services.keeper.stamp),
            held=view.held,
            routes_withheld=services.routes.withheld,
            unreadable=list(view.unreadable),
        )

    @app.get("/livez", tags=["head"])
    async def livez() -> VersionModel:
        """The head runs."""
        return told()

    @api.get("/version", tags=["head"])
    async def get_version(_: Viewer) -> VersionModel:
        """Which Penstock this is, and which routes it tells."""
        return told()
