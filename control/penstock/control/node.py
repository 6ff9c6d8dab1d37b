"""Composition root of the node agent: builds its objects, runs them, stops them in order.

SIGTERM ends the agent alone: its replicas serve on, and the next agent on the same data directory
adopts them, as it does after a kill. SIGINT, which is Ctrl-C, ends its replicas too: each is
drained and stopped, what is left is killed, and the process exits with 0 within eight seconds.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from secrets import token_hex
from typing import Any

from penstock.control.cluster_security import ClusterSecurity, cluster_security
from penstock.control.data_dir import (
    adapter_cache_path,
    cluster_token_path,
    locked,
    logs_path,
    secrets_path,
)
from penstock.control.errors import AddressTaken, CannotStart
from penstock.control.metrics.node import Machine, NodeMetrics
from penstock.control.metrics.server import serve_metrics
from penstock.control.node_addresses import advertised
from penstock.control.node_agent.adapter_cache import AdapterCache
from penstock.control.node_agent.agent import Agent, NodeIdentity
from penstock.control.node_agent.allegiance import Allegiance
from penstock.control.node_agent.dependencies import SupervisionTimings, SupervisorDependencies
from penstock.control.node_agent.devices import NodeResourcesReader
from penstock.control.node_agent.fitting import Fitting, NodeMemory
from penstock.control.node_agent.memory_watch import MemoryWatch
from penstock.control.node_agent.replica_command import (
    ReplicaHome,
    has_provider_flags,
    provider_flags,
    replica_command,
    replica_environment,
)
from penstock.control.node_agent.replica_table import ReplicaTable
from penstock.control.node_agent.router_tokens import RouterTokens
from penstock.control.node_agent.state_files import StateFiles
from penstock.control.node_agent.token_watch import TokenWatch
from penstock.control.node_agent.warm_pool import WarmPool
from penstock.control.node_logs import log_file, log_readers
from penstock.control.node_pool import VLLM, WarmSetup, warm_pool
from penstock.control.node_programs import router_programs
from penstock.control.outside.clock import SystemClock
from penstock.control.outside.devices import open_devices
from penstock.control.outside.dialer import Dialer
from penstock.control.outside.fit_process import FitProcess
from penstock.control.outside.head_client import HeadClient
from penstock.control.outside.logs import configure_logs, kept_in
from penstock.control.outside.machine import idle_cpu_seconds, read_resources
from penstock.control.outside.process_memory import ProcessMemory
from penstock.control.outside.processes import ProcessLauncher
from penstock.control.outside.replica_client import ReplicaClient
from penstock.control.outside.sockets import listen
from penstock.control.outside.tracing import ReplicaTraces, TracedStarts, Tracer, make_tracer
from penstock.control.rpc.node_agent_service import LOOPBACK, NodeAgentServer
from penstock.control.secrets_files import made_or_read, make_secrets_dir
from penstock.control.settings import NodeSettings, split_address
from penstock.control.supervision.log_watch import keep_logs
from penstock.control.supervision.restart_policy import RestartPolicy
from penstock.v1 import nodes_pb2

log = logging.getLogger("penstock.node")

# Together below the eight seconds that an agent may take that stops its replicas.
LAST_DRAIN = timedelta(seconds=3)
STOP_DEADLINE = timedelta(seconds=6)
TIMINGS = SupervisionTimings(stop_grace=timedelta(seconds=2.5))

LEAVING = nodes_pb2.NODE_INTENT_LEAVING
HANDING_OVER = nodes_pb2.NODE_INTENT_HANDING_OVER

# The command line of a replica.
Command = Callable[[nodes_pb2.ReplicaSpec, ReplicaHome], list[str]]


@dataclass(frozen=True, slots=True)
class _Ways:
    """How replicas are started and looked after."""

    command: Command
    policy: RestartPolicy
    timings: SupervisionTimings
    warm: WarmSetup
    tracer: Tracer


async def run_node(
    settings: NodeSettings,
    *,
    command: Command = replica_command,
    policy: RestartPolicy = RestartPolicy(),  # noqa: B008 - immutable
    timings: SupervisionTimings = TIMINGS,
    warm: WarmSetup = VLLM,
) -> int:
    """Runs a node agent until SIGTERM or SIGINT; returns its exit code. Tests pass another
    `command`, and a zygote of another engine."""
    configure_logs("node", settings.log_level)
    timings = replace(timings, start_limit=settings.start_limit)
    tracer = make_tracer("penstock-agent", settings.node_id)
    ways = _Ways(command, policy, timings, warm, tracer)
    stop = _Stop()
    try:
        await _run(settings, ways, stop)
        while stop.begins_again():
            if _token_file(settings).exists():
                settings = replace(settings, cluster_token_file=_token_file(settings))
            await _run(settings, ways, stop)
    except CannotStart as error:
        sys.stderr.write(f"penstock node: error: {error}\n")
        return 1
    finally:
        tracer.close()
    return 0


async def _run(settings: NodeSettings, ways: _Ways, stop: _Stop) -> None:
    with ExitStack() as stack:
        held = f"a node agent already runs on {settings.data_dir}"
        stack.enter_context(locked(settings.data_dir / "node-agent.lock", held))
        stack.enter_context(kept_in(log_file(settings)))
        security = cluster_security(settings.cluster_token_file, settings.tls)
        dialer = Dialer(security)
        server, same_port = _bind(settings, security)
        address = _address(settings, server)
        home = _home(settings, server, address, security)
        changed = asyncio.Event()
        client = ReplicaClient(dialer)
        pool = warm_pool(settings, ways.warm)
        memory = _memory(ways.timings, lambda: replicas)
        helpers = client, pool, memory.fitting
        dependencies = _dependencies(settings, ways, home, helpers, changed)
        allegiance = Allegiance(settings.data_dir / "node-agent.stamp", SystemClock().monotonic)
        async with HeadClient(settings.head, dialer) as head, asyncio.TaskGroup() as tasks:
            replicas = ReplicaTable(dependencies, tasks)
            adapters = _adapters(settings, head, replicas, tasks)
            token = _token_file(settings)
            watch = TokenWatch(token, security.token, stop.begin_again, allegiance.trouble)
            who = _identity(settings, address)
            tokens = RouterTokens(client, replicas.serving_rest)
            programs = router_programs(settings, head, changed.set)
            agent = Agent(
                *(who, head, replicas, memory.resources.read, allegiance, changed, watch.refused),
                warm_pool=pool.status,
                listeners=(tokens.learn, programs.learn),
                programs=programs.statuses,
            )
            # Before serving: a replica that announces itself is to be known already.
            await replicas.adopt(ProcessLauncher(), ["--agent", home.agent] if same_port else [])
            readers = log_readers(settings, dependencies.files.log_path, replicas.has)
            await server.serve(replicas, allegiance, adapters, readers, memory.fitting)
            log.info("node agent %s serves on %s", settings.node_id, address)
            logs = keep_logs(logs_path(settings.data_dir), settings.logs, SystemClock())
            metrics = _serve_metrics(settings, replicas, client, memory.resources, pool)
            beside = (metrics, adapters.run(), logs, pool.run(replicas), memory.watch.run())
            await _live(agent, replicas, tasks, stop, (*beside, tokens.run(), programs.run()))
        await server.stop()


def _dependencies(
    settings: NodeSettings,
    ways: _Ways,
    home: ReplicaHome,
    helpers: tuple[ReplicaClient, WarmPool, Fitting],
    changed: asyncio.Event,
) -> SupervisorDependencies:
    client, pool, memory = helpers

    def on_change() -> None:
        changed.set()
        pool.look()

    return SupervisorDependencies(
        launcher=ProcessLauncher(),
        pool=pool,
        probe=client,
        clock=SystemClock(),
        files=StateFiles(settings.data_dir),
        command=lambda spec: ways.command(spec, home),
        environment=lambda spec: replica_environment(spec, home),
        keeps_secrets=lambda spec, argv: has_provider_flags(argv, provider_flags(spec, home)),
        on_change=on_change,
        memory=memory,
        starts=TracedStarts(ways.tracer, SystemClock()),
        policy=ways.policy,
        timings=ways.timings,
    )


@dataclass(frozen=True, slots=True)
class _Memory:
    """Who knows of memory: what replicas take, what there is, whether another finds room."""

    watch: MemoryWatch
    resources: NodeResourcesReader
    fitting: Fitting


def _memory(timings: SupervisionTimings, replicas: Callable[[], ReplicaTable]) -> _Memory:
    """`replicas`: of this node, once there are any."""
    devices = open_devices()
    watch = MemoryWatch(
        ProcessMemory(devices),
        lambda: replicas().processes(),
        SystemClock(),
        timings.measure_every,
    )
    resources = NodeResourcesReader(read_resources, devices, watch.latest)
    here = NodeMemory(resources.read, lambda: replicas().starting(), watch.measured)
    return _Memory(watch, resources, Fitting(FitProcess(), here))


def _adapters(
    settings: NodeSettings, head: HeadClient, replicas: ReplicaTable, tasks: asyncio.TaskGroup
) -> AdapterCache:
    """Where replicas find adapters, without what the last agent had begun to fetch."""
    cache = AdapterCache(
        adapter_cache_path(settings.data_dir),
        head,
        SystemClock(),
        tasks,
        most_bytes=int(settings.adapter_cache_gib * (1 << 30)),
        needed=replicas.adapter_digests,
    )
    cache.throw_away_leftovers()
    return cache


async def _serve_metrics(
    settings: NodeSettings,
    replicas: ReplicaTable,
    client: ReplicaClient,
    resources: NodeResourcesReader,
    pool: WarmPool,
) -> None:
    if settings.metrics:
        machine = Machine(resources.read, idle_cpu_seconds)
        metrics = NodeMetrics(replicas, client, machine, asyncio.get_running_loop(), pool.status)
        where = split_address(settings.metrics, flag="--node-metrics")
        await serve_metrics(
            lambda: listen(*where, flag="--node-metrics"), metrics.page, SystemClock()
        )


def _identity(settings: NodeSettings, address: str) -> NodeIdentity:
    return NodeIdentity(
        settings.node_id,
        address,
        settings.host,
        os.getpid(),
        f"{_agent_id(settings)}@{address}",
        settings.allow_model_code,
        settings.zone,
        settings.metrics,
    )


def _agent_id(settings: NodeSettings) -> str:
    """What tells this data directory's agents from all others."""
    return made_or_read(settings.data_dir / "node-agent.id", lambda: token_hex(8))


def _token_file(settings: NodeSettings) -> Path:
    """Where the cluster's token is, or would be."""
    return settings.cluster_token_file or cluster_token_path(settings.data_dir)


class _Stop:
    """Why the agent is to stop: signals, or to begin again with another token."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.replicas_too = False
        self._for_good = False
        self._replicas_ended = False
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._end)
        loop.add_signal_handler(signal.SIGINT, self._end_all)

    def begin_again(self) -> None:
        """Everything is to be built anew, in this process."""
        self.requested.set()

    def ends_replicas(self) -> bool:
        """Whether the replicas end with this run; whoever asks acts on it."""
        self._replicas_ended = self.replicas_too
        return self._replicas_ended

    def begins_again(self) -> bool:
        """Whether the agent is to run once more; asked once it has stopped.

        Also where Ctrl-C came when the replicas were handed over already: to take them and end
        them.
        """
        if self._for_good:
            return self.replicas_too and not self._replicas_ended
        self.requested.clear()
        return True

    def _end(self) -> None:
        self._for_good = True
        self.requested.set()

    def _end_all(self) -> None:
        self.replicas_too = True
        self._end()


async def _live(
    agent: Agent,
    replicas: ReplicaTable,
    tasks: asyncio.TaskGroup,
    stop: _Stop,
    beside: Iterable[Coroutine[Any, Any, None]],
) -> None:
    """Reports to the head until it is to stop, and then tells it what becomes of the replicas.
    `beside`: what goes on as long."""
    going_on = [tasks.create_task(each) for each in (agent.report(), *beside)]
    await stop.requested.wait()
    ends_replicas = stop.ends_replicas()
    if ends_replicas:
        log.info("node agent stops its replicas")
        await replicas.stop_all(LAST_DRAIN, STOP_DEADLINE)
    else:
        log.info("node agent leaves its replicas to the next one")
        await replicas.hand_over()
    for task in going_on:
        task.cancel()
    await agent.say_goodbye(LEAVING if ends_replicas else HANDING_OVER)


def _address(settings: NodeSettings, server: NodeAgentServer) -> str:
    """Where the head reaches this agent."""
    host = split_address(settings.listen, flag="--listen")[0]
    return f"{advertised(host, settings.host)}:{server.port}"


def _home(
    settings: NodeSettings, server: NodeAgentServer, address: str, security: ClusterSecurity
) -> ReplicaHome:
    """How this node's replicas run; they register at a port without TLS."""
    local = f"{LOOPBACK}:{server.local_port}" if settings.tls.cert else address
    secrets_dir = settings.secrets_dir or secrets_path(settings.data_dir)
    make_secrets_dir(secrets_dir)
    return ReplicaHome(
        local,
        settings.host,
        _agent_id(settings),
        security.token,
        settings.allow_model_code,
        secrets_dir,
        settings.provider_hosts,
        settings.replica_ports,
        ReplicaTraces().of,
    )


def _bind(settings: NodeSettings, security: ClusterSecurity) -> tuple[NodeAgentServer, bool]:
    """The server, on the port of the last run if that is free, so that replicas find it again.

    Second: whether the port is the one that this data directory's last agent had.
    """
    host, port = split_address(settings.listen, flag="--listen")
    memory = settings.data_dir / "node-agent.port"
    last_port = _remembered(memory)
    server, agent_id = None, _agent_id(settings)
    if port == 0 and last_port:
        with suppress(AddressTaken):
            server = NodeAgentServer(host, last_port, security, agent_id)
    server = server or NodeAgentServer(host, port, security, agent_id)
    with suppress(OSError):  # a disk that takes nothing: what it remembers stands
        memory.write_text(f"{server.port}\n")
    return server, server.port == last_port


def _remembered(memory: Path) -> int:
    try:
        return int(memory.read_text())
    except (OSError, ValueError):
        return 0
