"""The FastAPI app: the API, its documents, and errors to problem bodies."""

from __future__ import annotations

import warnings
from collections.abc import Collection

from fastapi import APIRouter, FastAPI
from fastapi_offline import FastAPIOffline
from pydantic.warnings import UnsupportedFieldAttributeWarning

from penstock.control.admin.adapters.aliases_api import AliasesApi
from penstock.control.admin.adapters.api import AdaptersApi, adapter_policy_api
from penstock.control.admin.apply.api import ApplyApi
from penstock.control.admin.audit_api import audit_api
from penstock.control.admin.canary.api import CanariesApi
from penstock.control.admin.documents import with_problems
from penstock.control.admin.events_api import events_api
from penstock.control.admin.fleet.fits_api import fits_api
from penstock.control.admin.fleet.gateways_api import gateways_api
from penstock.control.admin.fleet.lists_api import lists_api
from penstock.control.admin.fleet.logs_api import fleet_logs_api, logs_api
from penstock.control.admin.fleet.nodes_api import nodes_api
from penstock.control.admin.idempotency import Answers
from penstock.control.admin.middleware import AdminMiddleware
from penstock.control.admin.observe.requests_api import RequestsApi
from penstock.control.admin.observe.scrape_targets_api import scrape_targets_api
from penstock.control.admin.problems import install_problems
from penstock.control.admin.recording.api import RecordingsApi
from penstock.control.admin.rollout.deployments_api import DeploymentsApi
from penstock.control.admin.rollout.engines_api import EnginesApi
from penstock.control.admin.rollout.evidence_api import RevisionEvidenceApi, deployment_policy_api
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
from penstock.control.managers.canary.canaries import CanaryManager
from penstock.control.managers.fleet.fleet_logs import FleetLogs
from penstock.control.managers.fleet.replica_logs import ReplicaLogs
from penstock.control.managers.recording.recordings import RecordingManager
from penstock.control.managers.rollout.evidence import EvidenceManager
from penstock.control.managers.rollout.fits import Fits
from penstock.control.managers.rollout.trials import TrialManager
from penstock.control.managers.routing.quarantine import Quarantine
from penstock.control.managers.shadow.shadows import ShadowManager
from penstock.control.managers.tenancy.tenants import TenantManager


def admin_app(services: AdminServices, version: str, *, hosts: Collection[str] = ()) -> FastAPI:
    """The admin API over the head's state. Its documents at /docs load nothing from elsewhere.

    `hosts`: names that it answers to, beside localhost and its own addresses.
    """
    # FastAPI names a body and an answer to pydantic, which has no use for the names, and is silent
    # about that only where pydantic makes their validators at once.
    warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)
    app: FastAPI = FastAPIOffline(
        title="Penstock admin",
        version=version,
        description="Desired state of deployments, and what came of it.",
        redoc_url=None,
    )
    app.state.answers = Answers(services.cluster, services.clock)
    install_problems(app)
    app.add_middleware(AdminMiddleware, tokens=services.tokens, hosts=hosts)
    shown = _observed(services, version)
    for router in (live_api(services, version), *_resources(services), *shown):
        app.router.routes.extend(router.routes)
    made = app.openapi
    app.openapi = lambda: with_problems(made())  # type: ignore[method-assign]  # FastAPI's own way
    return app


def _resources(services: AdminServices) -> list[APIRouter]:
    """What is below /admin/v1 and can be changed, or asked to do something."""
    cluster, clock, store = services.cluster, services.clock, services.store
    fits = Fits(services.nodes)
    deployments = DeploymentsApi(cluster, clock, services.traffic, services.spend.today, fits)
    evidence = EvidenceManager(cluster, services.adapters)
    tenants = TenantManager(cluster, clock)
    shadows = ShadowManager(cluster, clock)
    return [
        deployments.router(),
        RevisionsApi(deployments).router(),
        RevisionEvidenceApi(evidence).router(),
        deployment_policy_api(evidence),
        EnginesApi(services.engines, cluster, services.base_url).router(),
        spend_api(cluster, store, clock),
        trial_api(TrialManager(cluster, services.replicas)),
        lists_api(cluster),
        nodes_api(cluster, clock),
        fits_api(cluster, fits),
        gateways_api(cluster, services.gateways),
        AdaptersApi(services.adapters, services.adapter_scratch).router(),
        adapter_policy_api(services.adapters),
        AliasesApi(AliasManager(cluster, services.routes, clock)).router(),
        quarantine_api(Quarantine(cluster)),
        TenantsApi(tenants).router(),
        keys_api(tenants, clock),
        access_api(tenants),
        usage_api(store, tenants, clock),
        ShadowsApi(shadows, services.comparisons, store, clock).router(),
        CanariesApi(CanaryManager(cluster, clock), cluster).router(),
        RecordingsApi(RecordingManager(cluster, clock), services.recorded).router(),
        ApplyApi(cluster, services.adapters, clock, fits).router(),
        tokens_api(services.tokens),
    ]


def _observed(services: AdminServices, version: str) -> list[APIRouter]:
    """What is only looked at."""
    cluster, clock, store = services.cluster, services.clock, services.store
    return [
        logs_api(ReplicaLogs(cluster, services.logs.agents)),
        fleet_logs_api(FleetLogs(cluster, services.logs, clock)),
        audit_api(store),
        events_api(store, services.events),
        RequestsApi(services.explain, clock).router(),
        version_api(services, version),
        status_api(services.problems),
        scrape_targets_api(cluster, services.head_metrics),
    ]
