"""`penstock head` and `penstock node`: the processes of a system on many machines."""

from __future__ import annotations

import asyncio
import socket
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from penstock.control.cli.loading import loading
from penstock.control.cli.options import (
    CERT_OF_CLIENTS,
    START_SECONDS,
    AdapterCacheGib,
    AllowHosts,
    AllowModelCode,
    ClientAddresses,
    ClusterTokenFile,
    CorsOrigins,
    DataDir,
    ExistingStore,
    ExplainBudgetBytes,
    LogKeepDays,
    LogKeepGib,
    LogLevel,
    NodeId,
    OpenGateway,
    ProgramModules,
    ProgramsDir,
    ProviderHosts,
    PublicUrl,
    SecretsDir,
    StartLimit,
    TakeOver,
    TlsCa,
    TlsCert,
    TlsKey,
    TraceSample,
    TraceSlowMs,
    Verbosity,
    Warm,
    Zone,
    option,
)
from penstock.control.cli.outcome import explained, finish
from penstock.control.data_dir import cluster_token_path
from penstock.control.node_addresses import node_addresses
from penstock.control.outside.process_tree import stop_with_parent
from penstock.control.outside.sockets import outgoing_address
from penstock.control.settings import (
    ADAPTER_CACHE_GIB,
    ADMIN_ADDRESS,
    ANY_PORT,
    AUTO,
    DATA_DIR,
    DEEP_CHECK_EVERY,
    ENGINES,
    GATEWAY_ADDRESS,
    LOGS,
    METRICS_ADDRESS,
    RECORDS,
    RPC_ADDRESS,
    EngineLimits,
    HeadSettings,
    HeadTimings,
    LogRetention,
    NodeSettings,
    RecordKeeping,
    TlsFiles,
    gateway_tls,
    split_hosts,
    split_modules,
    warm_members,
)
from penstock.control.trace_choice import TraceChoice

GatewayBinary = Annotated[Path | None, option("GATEWAY_BINARY", "The gateway program to run.")]
GatewayThreads = Annotated[int | None, option("GATEWAY_THREADS", "Its I/O threads.", min=1)]
GatewayTlsCert = Annotated[Path | None, option("GATEWAY_TLS_CERT", CERT_OF_CLIENTS)]
GatewayTlsKey = Annotated[Path | None, option("GATEWAY_TLS_KEY", "PEM file: its private key.")]
ComparerPort = Annotated[
    int,
    option(
        "COMPARER_PORT",
        "Port, on the host of --rpc, where gateways hand over what shadows answered; 0: any "
        "that is free.",
        min=0,
        max=65535,
    ),
]
RecordKeepDays = Annotated[
    float,
    option(
        "RECORD_KEEP_DAYS",
        "How long prompts and answers are kept that shadows and recordings record.",
        metavar="DAYS",
    ),
]
RecordKeepGib = Annotated[
    float,
    option(
        "RECORD_KEEP_GIB",
        "How much these may take together; beyond it the oldest go.",
        metavar="GIB",
    ),
]
RecordKeyFile = Annotated[
    Path | None,
    option(
        "RECORD_KEY_FILE",
        "File of mode 0600 with 32 bytes, or these as base64: these are encrypted under it.",
    ),
]
Redaction = Annotated[
    Path | None,
    option(
        "REDACTION",
        'JSON file with what is taken out of them besides: {"keys": ["password"], '
        '"patterns": {"ticket": "TCK-\\d+"}}.',
    ),
]
MaxEngines = Annotated[
    int, option("MAX_ENGINES", "How many engines there may be (`penstock engines`).")
]
MaxEnginesPerToken = Annotated[
    int, option("MAX_ENGINES_PER_TOKEN", "How many of them one token may have asked for.")
]
NoGateway = Annotated[bool, typer.Option("--no-gateway", help="Run no gateway on this machine.")]
DeepCheckEvery = Annotated[
    float,
    option(
        "DEEP_CHECK_EVERY",
        "How often each replica has to show that its engine does its work; 0: never.",
        metavar="SECONDS",
    ),
]
THIS_MACHINE = socket.gethostname()
DEEP_SECONDS = DEEP_CHECK_EVERY.total_seconds()
# Given by `penstock serve`: see outside/process_tree.py.
WithParent = Annotated[int, typer.Option(hidden=True)]


def head(
    data_dir: DataDir = Path(DATA_DIR),
    admin: Annotated[str, option("ADMIN", "host:port of the admin REST API.")] = ADMIN_ADDRESS,
    rpc: Annotated[str, option("RPC", "host:port for gateways and node agents.")] = RPC_ADDRESS,
    gateway: Annotated[str, option("GATEWAY", "host:port of the local gateway.")] = GATEWAY_ADDRESS,
    head_metrics: Annotated[
        str,
        option(
            "HEAD_METRICS",
            "host:port where Prometheus finds the head's own metrics. Default: none.",
        ),
    ] = "",
    gateway_metrics: Annotated[
        str,
        option(
            "METRICS", "host:port of the local gateway's metrics and status pages; empty: none."
        ),
    ] = METRICS_ADDRESS,
    gateway_binary: GatewayBinary = None,
    gateway_threads: GatewayThreads = None,
    gateway_tls_cert: GatewayTlsCert = None,
    gateway_tls_key: GatewayTlsKey = None,
    no_gateway: NoGateway = False,
    public_url: PublicUrl = "",
    max_engines: MaxEngines = ENGINES.total,
    max_engines_per_token: MaxEnginesPerToken = ENGINES.per_token,
    comparer_port: ComparerPort = 0,
    record_keep_days: RecordKeepDays = RECORDS.days,
    record_keep_gib: RecordKeepGib = RECORDS.gib,
    record_key_file: RecordKeyFile = None,
    redaction: Redaction = None,
    node_id: NodeId = THIS_MACHINE,
    zone: Zone = "",
    open_gateway: OpenGateway = False,
    log_level: Verbosity = LogLevel.INFO,
    log_keep_gib: LogKeepGib = LOGS.gib,
    log_keep_days: LogKeepDays = LOGS.days,
    cluster_token_file: ClusterTokenFile = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    tls_ca: TlsCa = None,
    allow_host: AllowHosts = None,
    client_addresses: ClientAddresses = True,
    cors_origin: CorsOrigins = None,
    trace_sample: TraceSample = 0.0,
    trace_slow_ms: TraceSlowMs = 0,
    explain_budget_bytes: ExplainBudgetBytes = None,
    deep_check_every: DeepCheckEvery = DEEP_SECONDS,
    existing_store: ExistingStore = False,
    take_over: TakeOver = False,
    with_parent: WithParent = 0,
) -> None:
    """Run the control plane: desired state, routes, admin API, and one local gateway.

    SIGTERM ends the head alone, and the next one takes up its gateway. Ctrl-C ends both.

    Example: penstock head --rpc 0.0.0.0:8082 --admin 127.0.0.1:8081
    """
    with loading():
        from penstock.control.head import run_head  # starts faster for every other verb

    with explained("head"):
        stop_with_parent(with_parent)
        settings = HeadSettings(
            data_dir=data_dir.resolve(),
            admin=admin,
            rpc=rpc,
            gateway=gateway,
            metrics=gateway_metrics,
            head_metrics=head_metrics,
            gateway_binary=gateway_binary,
            gateway_threads=gateway_threads,
            run_gateway=not no_gateway,
            public_url=public_url,
            engines=EngineLimits(max_engines_per_token, max_engines),
            comparer_port=comparer_port,
            records=RecordKeeping(record_keep_days, record_keep_gib, record_key_file, redaction),
            node=node_id,
            zone=zone,
            gateway_tls=gateway_tls(gateway_tls_cert, gateway_tls_key, prefix="--gateway-"),
            open_gateway=open_gateway,
            log_level=log_level,
            logs=LogRetention(log_keep_gib, log_keep_days),
            cluster_token_file=cluster_token_file or cluster_token_path(data_dir.resolve()),
            tls=TlsFiles(tls_cert, tls_key, tls_ca),
            allow_hosts=tuple(allow_host or ()),
            client_addresses=client_addresses,
            cors_origins=tuple(cors_origin or ()),
            traces=TraceChoice(trace_sample, trace_slow_ms),
            explain_budget_bytes=explain_budget_bytes,
            timings=HeadTimings(deep_check_every=timedelta(seconds=deep_check_every)),
            existing_store=existing_store,
            take_over=take_over,
        )
        finish(asyncio.run(run_head(settings)))


def node(
    head: Annotated[str, option("HEAD", "host:port of the head's --rpc.")] = RPC_ADDRESS,
    data_dir: DataDir = Path(DATA_DIR),
    node_id: NodeId = THIS_MACHINE,
    listen: Annotated[
        str, option("LISTEN", "host:port where the head reaches it. Default: found out.")
    ] = "",
    host: Annotated[
        str, option("HOST", "Address where gateways reach its replicas. Default: that of --listen.")
    ] = "",
    replica_ports: Annotated[
        str,
        option(
            "REPLICA_PORTS",
            "Its replicas listen at ports of this range; 0: at any that is free.",
            metavar="FIRST-LAST",
        ),
    ] = ANY_PORT,
    zone: Zone = "",
    node_metrics: Annotated[
        str,
        option(
            "NODE_METRICS",
            "host:port where Prometheus finds the metrics of this machine and of its replicas."
            " Default: none.",
        ),
    ] = "",
    log_level: Verbosity = LogLevel.INFO,
    log_keep_gib: LogKeepGib = LOGS.gib,
    log_keep_days: LogKeepDays = LOGS.days,
    cluster_token_file: ClusterTokenFile = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    tls_ca: TlsCa = None,
    allow_model_code: AllowModelCode = False,
    start_limit: StartLimit = START_SECONDS,
    adapter_cache_gib: AdapterCacheGib = ADAPTER_CACHE_GIB,
    secrets_dir: SecretsDir = None,
    provider_hosts: ProviderHosts = "",
    warm: Warm = AUTO,
    programs_dir: ProgramsDir = None,
    program_modules: ProgramModules = "",
    with_parent: WithParent = 0,
) -> None:
    """Run the node agent of this machine: it starts, watches and restarts replicas.

    SIGTERM ends the agent alone: its replicas serve on, the next agent takes them up. Ctrl-C ends
    both.

    Example: penstock node --head 10.0.0.1:8082
    """
    with loading():
        from penstock.control.node import run_node  # starts faster for every other verb

    with explained("node"):
        stop_with_parent(with_parent)
        addresses = node_addresses(head, listen, host, outgoing_address)
        settings = NodeSettings(
            head=head,
            data_dir=data_dir.resolve(),
            node_id=node_id,
            listen=addresses.listen,
            host=addresses.host,
            replica_ports=replica_ports,
            zone=zone,
            metrics=node_metrics,
            log_level=log_level,
            logs=LogRetention(log_keep_gib, log_keep_days),
            cluster_token_file=cluster_token_file or _token_beside(data_dir.resolve()),
            tls=TlsFiles(tls_cert, tls_key, tls_ca),
            allow_model_code=allow_model_code,
            start_limit=timedelta(seconds=start_limit),
            adapter_cache_gib=adapter_cache_gib,
            secrets_dir=secrets_dir and secrets_dir.expanduser().resolve(),
            provider_hosts=split_hosts(provider_hosts),
            warm=warm_members(warm),
            programs_dir=programs_dir and programs_dir.expanduser().resolve(),
            program_modules=split_modules(program_modules),
        )
        finish(asyncio.run(run_node(settings)))


def _token_beside(data_dir: Path) -> Path | None:
    """The token of a head on the same data, or a copy of one that was put there."""
    path = cluster_token_path(data_dir)
    return path if path.exists() else None
