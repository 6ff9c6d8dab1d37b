"""Builds the head's admin API: its tokens, and the names that it answers to."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata

from penstock.control.admin.app import admin_app
from penstock.control.admin.hosts import bracketed
from penstock.control.admin.recording.api import Recorded
from penstock.control.admin.server import AdminServer
from penstock.control.admin.services import AdminServices
from penstock.control.admin.shadow.api import Comparisons
from penstock.control.data_dir import admin_token_path
from penstock.control.head_adapters import HeadAdapters
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.events import EventManager
from penstock.control.managers.fleet.fleet_logs import LogSources
from penstock.control.managers.fleet.proxies import GatewayManager
from penstock.control.managers.observe.explain import ExplainManager
from penstock.control.managers.rollout.engines import EngineManager
from penstock.control.managers.rollout.fits import AsksNodes
from penstock.control.managers.rollout.trials import ReplicaCaller
from penstock.control.managers.routing.routes import RouteManager
from penstock.control.managers.routing.traffic import Traffic
from penstock.control.managers.tenancy.spend import SpendManager
from penstock.control.managers.tenancy.tokens import TokenManager, new_secret
from penstock.control.secrets_files import made_or_read
from penstock.control.settings import LOOPBACK, HeadSettings, split_address
from penstock.control.state.problems import Problem
from penstock.control.store.store import Store
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AdminSources:
    """What the API shows and whom it asks, beside those who change the cluster."""

    traffic: Traffic
    spend: SpendManager
    replicas: ReplicaCaller
    comparisons: Comparisons
    recorded: Recorded
    logs: LogSources
    nodes: AsksNodes
    events: EventManager
    engines: EngineManager
    explain: ExplainManager
    gateways: GatewayManager | None
    problems: Callable[[], Sequence[Problem]]
    tokens: TokenManager


def admin_server(
    settings: HeadSettings,
    listener: socket.socket,
    cluster: ClusterStore,
    adapters: HeadAdapters,
    routes: RouteManager,
    store: Store,
    clock: Clock,
    sources: AdminSources,
) -> AdminServer:
    """The server, idle."""
    _warn_of_plain_tokens(settings)
    services = AdminServices(
        cluster,
        adapters.manager,
        adapters.scratch,
        routes,
        sources.tokens,
        clock,
        store,
        sources.spend,
        sources.replicas,
        sources.comparisons,
        sources.recorded,
        sources.events,
        sources.logs,
        sources.engines,
        sources.nodes,
        sources.explain,
        settings.base_url,
        sources.gateways,
        sources.traffic,
        sources.problems,
        settings.head_metrics,
    )
    app = admin_app(services, metadata.version("penstock"), hosts=_hosts(settings))
    return AdminServer(app, listener, settings.tls)


async def admin_tokens(settings: HeadSettings, cluster: ClusterStore, clock: Clock) -> TokenManager:
    """All that are stored. The first start writes one of role admin; who reads the data directory
    may use it. Raises `SecretUnusable`."""
    file = admin_token_path(settings.data_dir)
    new = not file.exists()
    tokens = TokenManager(cluster, clock)
    await tokens.begin(made_or_read(file, new_secret), new=new)
    return tokens


def _hosts(settings: HeadSettings) -> tuple[str, ...]:
    """Names that the API answers to: those it was told, and the one it was told to be at."""
    host, _ = split_address(settings.admin, flag="--admin")
    return (host, *settings.allow_hosts)


def _warn_of_plain_tokens(settings: HeadSettings) -> None:
    host, _ = split_address(settings.admin, flag="--admin")
    if bracketed(host.strip("[]")) not in LOOPBACK and settings.tls.cert is None:
        log.warning(
            "the admin API is reached from elsewhere without TLS, so its tokens can be read on "
            "the way: give --tls-cert and --tls-key, or put it behind a proxy that has them",
            extra={"admin": settings.admin},
        )
