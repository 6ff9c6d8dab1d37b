"""The FastAPI app: the API, its documents, and errors to problem bodies."""

from __future__ import annotations

from collections.abc import Collection

from fastapi import APIRouter, Depends, FastAPI
from fastapi_offline import FastAPIOffline

from penstock.control.admin.adapters.aliases_api import AliasesApi
from penstock.control.admin.adapters.api import AdaptersApi, adapter_policy_api
from penstock.control.admin.audit_api import audit_api
from penstock.control.admin.documents import with_problems
from penstock.control.admin.fleet.gateways_api import gateways_api
from penstock.control.admin.fleet.lists_api import lists_api
from penstock.control.admin.fleet.nodes_api import nodes_api
from penstock.control.admin.middleware import AdminMiddleware
from penstock.control.admin.parameters import known_parameters
from penstock.control.admin.problems import install_problems
from penstock.control.admin.recording.api import RecordingsApi
from penstock.control.admin.rollout.deployments_api import DeploymentsApi
from penstock.control.admin.rollout.revisions_api import RevisionsApi
from penstock.control.admin.rollout.trial_api import trial_api
from penstock.control.admin.routing.quarantine_api import quarantine_api
from penstock.control.admin.services import AdminServices
from penstock.control.admin.shadow.api import ShadowsApi
from penstock.control.admin.status_api import status_api
from penstock.control.admin.tenancy.keys_api import access_api, keys_api
from penstock.control.admin.tenancy.spend_api import spend_api
from penstock.control.admin.tenancy.tenants_api import TenantsApi
from penstock.control.admin.tenancy.tokens_api import tokens_api
from penstock.control.admin.tenancy.usage_api import usage_api
from penstock.control.admin.version_api import live_api, version_api
from penstock.control.managers.adapters.aliases import AliasManager
from penstock.control.managers.recording.recordings import RecordingManager
from penstock.control.managers.rollout.trials import TrialManager
from penstock.control.managers.routing.quarantine import Quarantine
from penstock.control.managers.shadow.shadows import ShadowManager
from penstock.control.managers.tenancy.tenants import TenantManager


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
    app.add_middleware(AdminMiddleware, tokens=services.tokens, hosts=hosts)
    app.include_router(live_api(services, version))
    app.include_router(_resources(services, version))
    made = app.openapi
    app.openapi = lambda: with_problems(made())  # type: ignore[method-assign]  # FastAPI's own way
    return app


def _resources(services: AdminServices, version: str) -> APIRouter:
    """Everything below /admin/v1."""
    api = APIRouter(
        prefix="/admin/v1",
        dependencies=[Depends(known_parameters)],
        responses={"4XX": {"description": "Refused"}, "5XX": {"description": "Failed"}},
    )
    deployments = DeploymentsApi(
        services.cluster, services.clock, services.traffic, services.spend.today
    )
    api.include_router(deployments.router())
    api.include_router(RevisionsApi(deployments).router())
    api.include_router(spend_api(services.cluster, services.store, services.clock))
    api.include_router(trial_api(TrialManager(services.cluster, services.replicas)))
    api.include_router(lists_api(services.cluster))
    api.include_router(nodes_api(services.cluster, services.clock))
    api.include_router(gateways_api(services.gateways))
    aliases = AliasManager(services.cluster, services.routes, services.clock)
    api.include_router(AdaptersApi(services.adapters, services.adapter_scratch).router())
    api.include_router(adapter_policy_api(services.adapters))
    api.include_router(AliasesApi(aliases).router())
    api.include_router(quarantine_api(Quarantine(services.cluster)))
    tenants = TenantManager(services.cluster, services.clock)
    api.include_router(TenantsApi(tenants).router())
    api.include_router(keys_api(tenants, services.clock))
    api.include_router(access_api(tenants))
    api.include_router(usage_api(services.store, tenants, services.clock))
    shadows = ShadowManager(services.cluster, services.clock)
    compared = ShadowsApi(shadows, services.comparisons, services.store, services.clock)
    api.include_router(compared.router())
    recordings = RecordingManager(services.cluster, services.clock)
    api.include_router(RecordingsApi(recordings, services.recorded).router())
    api.include_router(audit_api(services.store))
    api.include_router(tokens_api(services.tokens))
    api.include_router(version_api(services, version))
    api.include_router(status_api(services.problems))
    return api
