"""The objects of a head, built and taken apart: what `head.py` runs."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from penstock.control.admin.server import AdminServer
from penstock.control.admin.services import AdminServices
from penstock.control.cluster_security import (
    ClusterSecurity,
    cluster_security,
    make_cluster_token,
)
from penstock.control.data_dir import (
    announce,
    cluster_token_path,
    had_store,
    logs_path,
    owned,
    store_path,
    trouble,
)
from penstock.control.head_adapters import HeadAdapters, head_adapters
from penstock.control.head_admin import admin_server, admin_tokens
from penstock.control.head_gateway import gateway_manager
from penstock.control.head_shadows import HeadShadows, head_shadows
from penstock.control.machine_logs.reader import LocalLogs
from penstock.control.machine_logs.sources import HEAD_LOG, LogFolder, head_sources
from penstock.control.managers.canary.judging import CanaryJudge
from penstock.control.managers.canary.records import CanaryRecords
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.events import EventManager
from penstock.control.managers.fleet.fleet_logs import LogSources
from penstock.control.managers.fleet.gateway_reports import GatewayReports
from penstock.control.managers.fleet.gateway_signs import GatewaySigns
from penstock.control.managers.fleet.health import HealthManager
from penstock.control.managers.fleet.proxies import GatewayManager
from penstock.control.managers.observe.explain import ExplainManager
from penstock.control.managers.problem_watch import ProblemWatch
from penstock.control.managers.rollout.deployments import DeploymentManager, ReconcileObserver
from penstock.control.managers.rollout.engines import EngineManager
from penstock.control.managers.routing.programs import Programs
from penstock.control.managers.routing.routes import RouteManager
from penstock.control.managers.routing.traffic import Traffic
from penstock.control.managers.shadow.comparer import ComparerManager
from penstock.control.managers.tenancy.shares import ShareManager
from penstock.control.managers.tenancy.spend import SpendManager
from penstock.control.managers.tenancy.tokens import TokenManager
from penstock.control.managers.tenancy.usage import UsageManager
from penstock.control.metrics.certificates import certificate_ends
from penstock.control.metrics.head import HeadFacts, HeadMetrics
from penstock.control.metrics.usage import UsageToday
from penstock.control.outside.clock import SystemClock
from penstock.control.outside.dialer import Dialer
from penstock.control.outside.grpc_clients import GrpcAgentClient
from penstock.control.outside.log_client import GrpcAgentLogs
from penstock.control.outside.logs import kept_in
from penstock.control.outside.replica_caller import GrpcReplicaCaller
from penstock.control.outside.replica_pinger import GrpcReplicaPinger
from penstock.control.outside.sockets import check_free, listen
from penstock.control.outside.tracing import TracedReconciling, make_tracer
from penstock.control.placement.agents import AgentPlacement
from penstock.control.rpc.nodes_service import NodesService, ToldToNodes
from penstock.control.rpc.routes_service import RoutesService
from penstock.control.rpc.server import serve_rpc
from penstock.control.settings import HeadSettings, split_address
from penstock.control.state.fleet.health import Patience
from penstock.control.state.rollout.replacing import Deadlines
from penstock.control.store.sqlite import SqliteStore
from penstock.control.store.timed_writes import TimedWrites

RPC_GRACE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Head:
    """Everything that runs in a head."""

    cluster: ClusterStore
    adapters: HeadAdapters
    health: HealthManager
    deployments: DeploymentManager
    routes: RouteManager
    usage: UsageManager
    gateway: GatewayManager | None
    admin: AdminServer
    metrics: HeadMetrics
    watch: ProblemWatch
    shadows: HeadShadows
    events: EventManager
    engines: EngineManager
    canaries: CanaryJudge
    explain: ExplainManager


@asynccontextmanager
async def built(settings: HeadSettings) -> AsyncIterator[Head]:
    """Builds the head, listening but idle; takes it apart at the end, in reverse."""
    async with AsyncExitStack() as stack:
        _own_directory(settings, stack)
        dialer = Dialer(security := _security(settings))
        sock, store = _listening(settings, stack), await _store(settings, stack)
        signs, traffic = GatewaySigns(clock := SystemClock()), Traffic()
        cluster, routes, metrics, watch = await _observed(settings, store, clock, traffic)
        placement = _placement(cluster, dialer, stack)
        adapters = await head_adapters(settings, cluster, placement, clock, stack)
        health = _health(settings, cluster, clock, dialer, stack)
        usage, spend = await _usage(cluster, store, clock, stack)
        events = EventManager(cluster, store, clock, metrics)
        tokens, nodes = await _nodes(settings, cluster, health, adapters, clock)
        service, explain = _routes_service(cluster, routes, usage, signs, traffic, clock)
        rpc_address = await _serve_rpc(settings, security, (service, nodes), stack)
        gateway = gateway_manager(settings, rpc_address, cluster, signs)
        shadows = head_shadows(settings, cluster, store, dialer, clock)
        engines = EngineManager(cluster, routes, clock, settings.engines)
        known = (cluster, adapters.manager, adapters.scratch, routes, tokens, clock, store, spend)
        asked = (*_asked(settings, dialer, shadows, clock), events, engines, placement, explain)
        shown = (settings.base_url, gateway, traffic, watch.now, settings.head_metrics)
        admin = admin_server(settings, sock, AdminServices(*known, *asked, *shown))
        announce(settings.data_dir, _addresses(settings, sock, rpc_address))
        yield Head(
            cluster,
            adapters,
            health,
            _deployments(settings, cluster, placement, clock, _traced(settings, metrics, stack)),
            routes,
            usage,
            gateway,
            admin,
            metrics,
            watch,
            shadows,
            events,
            engines,
            _canaries(cluster, adapters, shadows, clock),
            explain,
        )


def _routes_service(
    cluster: ClusterStore,
    routes: RouteManager,
    usage: UsageManager,
    signs: GatewaySigns,
    traffic: Traffic,
    clock: SystemClock,
) -> tuple[RoutesService, ExplainManager]:
    """Who speaks to gateways, and who asks them about requests."""
    reports = GatewayReports(cluster, signs, clock, traffic)
    explain = ExplainManager(cluster, clock)
    return RoutesService(routes, reports, usage, explain), explain


def _canaries(
    cluster: ClusterStore, adapters: HeadAdapters, shadows: HeadShadows, clock: SystemClock
) -> CanaryJudge:
    records = CanaryRecords(cluster, adapters.manager, shadows.comparer, clock)
    return CanaryJudge(cluster, records, clock)


def _asked(
    settings: HeadSettings, dialer: Dialer, shadows: HeadShadows, clock: SystemClock
) -> tuple[GrpcReplicaCaller, ComparerManager, ComparerManager, LogSources]:
    """Whom the admin API asks beside the cluster: replicas, what was compared, recorded, logged."""
    folder = LogFolder(logs_path(settings.data_dir))
    logs = LogSources(GrpcAgentLogs(dialer), LocalLogs(lambda: head_sources(folder), clock))
    return GrpcReplicaCaller(dialer), shadows.comparer, shadows.comparer, logs


def _own_directory(settings: HeadSettings, stack: AsyncExitStack) -> None:
    """Raises `data-dir-in-use`; whoever owns it writes to its log."""
    stack.enter_context(owned(settings.data_dir))
    stack.enter_context(kept_in(LogFolder(logs_path(settings.data_dir)).path(HEAD_LOG)))


def _listening(settings: HeadSettings, stack: AsyncExitStack) -> socket.socket:
    """For the admin API, once it is known that the other port can be had too."""
    check_free(*split_address(settings.rpc, flag="--rpc"), flag="--rpc")
    sock = listen(*split_address(settings.admin, flag="--admin"), flag="--admin")
    return stack.enter_context(sock)


async def _store(settings: HeadSettings, stack: AsyncExitStack) -> SqliteStore:
    existed = had_store(settings.data_dir, existed=settings.existing_store)
    store = await SqliteStore.open(store_path(settings.data_dir), existed=existed)
    stack.push_async_callback(store.close)
    return store


def _placement(cluster: ClusterStore, dialer: Dialer, stack: AsyncExitStack) -> AgentPlacement:
    placement = AgentPlacement(
        lambda address: GrpcAgentClient(address, dialer, lambda: cluster.stamp)
    )
    stack.push_async_callback(placement.close)
    return placement


async def _observed(
    settings: HeadSettings, store: SqliteStore, clock: SystemClock, traffic: Traffic
) -> tuple[ClusterStore, RouteManager, HeadMetrics, ProblemWatch]:
    """Who keeps the view, as the last head left it, and who tells routes; what Prometheus is told
    of them, what is wrong."""
    gateway = settings.gateway_tls if settings.run_gateway else None
    certificates = {"head": settings.tls.cert, "gateway": gateway.cert if gateway else None}
    facts = HeadFacts(
        lambda: cluster.view(),
        lambda: routes.current().version,
        traffic.totals,
        lambda: len(cluster.liveness.refused),
        lambda: watch.latest(),
        slo_totals=traffic.slo.totals,
        usage_today=UsageToday(store, clock, asyncio.get_running_loop()).rows,
        certificate_ends=lambda: certificate_ends(certificates),
    )
    metrics = HeadMetrics(facts)
    store.observe(writes := TimedWrites(clock, metrics))
    cluster = ClusterStore(store, clock)
    routes = RouteManager(cluster, clock)
    watch = ProblemWatch(cluster, routes, writes, lambda: trouble(settings.data_dir), clock)
    await cluster.restore(listens=settings.take_over)
    return cluster, routes, metrics, watch


async def _nodes(
    settings: HeadSettings,
    cluster: ClusterStore,
    health: HealthManager,
    adapters: HeadAdapters,
    clock: SystemClock,
) -> tuple[TokenManager, NodesService]:
    """Who speaks to agents, with the tokens that it tells them of: known before the first asks."""
    tokens = await admin_tokens(settings, cluster, clock)
    programs, heartbeat = Programs(cluster), settings.timings.heartbeat
    told = ToldToNodes(programs.wanted, programs.text, tokens.router_digests)
    service = NodesService(health, heartbeat, adapters.contents, lambda: cluster.stamp, told)
    return tokens, service


async def _usage(
    cluster: ClusterStore, store: SqliteStore, clock: SystemClock, stack: AsyncExitStack
) -> tuple[UsageManager, SpendManager]:
    """What was used is known before routes are told, and written before the store closes."""
    spend = SpendManager(cluster, store, clock)
    usage = UsageManager(cluster, store, ShareManager(cluster, clock), spend, clock)
    await usage.judge()
    stack.push_async_callback(usage.flush)
    return usage, spend


def _security(settings: HeadSettings) -> ClusterSecurity:
    """The first start makes the cluster's token, unless another file was named."""
    made_here = cluster_token_path(settings.data_dir)
    if settings.cluster_token_file == made_here:
        make_cluster_token(made_here)
    return cluster_security(settings.cluster_token_file, settings.tls)


def _health(
    settings: HeadSettings,
    cluster: ClusterStore,
    clock: SystemClock,
    dialer: Dialer,
    stack: AsyncExitStack,
) -> HealthManager:
    timings = settings.timings
    pinger = GrpcReplicaPinger(timings.ping_timeout, dialer)
    stack.push_async_callback(pinger.close)
    return HealthManager(
        cluster,
        pinger,
        clock,
        Patience(timings.silent_after, timings.lost_after, timings.forget_after),
        ping_every=timings.ping_every,
        deep_every=timings.deep_check_every,
    )


def _deployments(
    settings: HeadSettings,
    cluster: ClusterStore,
    placement: AgentPlacement,
    clock: SystemClock,
    observer: ReconcileObserver,
) -> DeploymentManager:
    timings = settings.timings
    return DeploymentManager(
        cluster,
        placement,
        clock,
        Deadlines(timings.ready_deadline, timings.retry_failed_after),
        drain=timings.drain,
        new_id=lambda: secrets.token_hex(3),
        observer=observer,
    )


def _traced(
    settings: HeadSettings, metrics: HeadMetrics, stack: AsyncExitStack
) -> ReconcileObserver:
    tracer = make_tracer("penstock-head", settings.node or settings.gateway_id)
    stack.callback(tracer.close)
    return TracedReconciling(metrics, tracer, SystemClock())


async def _serve_rpc(
    settings: HeadSettings,
    security: ClusterSecurity,
    services: tuple[RoutesService, NodesService],
    stack: AsyncExitStack,
) -> str:
    """Serves gateways and agents; returns the address, a free port filled in."""
    server, port = await serve_rpc(settings.rpc, *services, security)
    stack.push_async_callback(server.stop, RPC_GRACE_SECONDS)
    host, _ = split_address(settings.rpc, flag="--rpc")
    return f"{host}:{port}"


def _addresses(settings: HeadSettings, admin: socket.socket, rpc: str) -> dict[str, str]:
    gateway = settings.gateway if settings.run_gateway else ""
    return {"admin": _address(admin), "rpc": rpc, "gateway": gateway}


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
