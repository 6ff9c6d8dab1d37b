"""`penstock serve`: everything on one machine."""

from __future__ import annotations

import asyncio
import inspect
import socket
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.control.cli.loading import loading
from penstock.control.cli.options import (
    CERT_OF_CLIENTS,
    START_SECONDS,
    AdapterCacheGib,
    AllowHosts,
    AllowModelCode,
    ClientAddresses,
    CorsOrigins,
    DataDir,
    ExplainBudgetBytes,
    LogKeepDays,
    LogKeepGib,
    LogLevel,
    OpenGateway,
    ProgramModules,
    ProviderHosts,
    PublicUrl,
    SecretsDir,
    StartLimit,
    TakeOver,
    TraceSample,
    TraceSlowMs,
    Verbosity,
    Warm,
    option,
    security_option,
)
from penstock.control.cli.outcome import explained, finish
from penstock.control.serving import options as serve_options
from penstock.control.serving.display import ToughConsole
from penstock.control.serving.settings_text import parse_settings
from penstock.control.settings import (
    ADAPTER_CACHE_GIB,
    ADMIN_ADDRESS,
    AUTO,
    DATA_DIR,
    GATEWAY_ADDRESS,
    HEAD_METRICS_ADDRESS,
    LOGS,
    METRICS_ADDRESS,
    NODE_METRICS_ADDRESS,
    RPC_ADDRESS,
    LogRetention,
    gateway_tls,
    split_hosts,
    split_modules,
    warm_members,
)
from penstock.control.trace_choice import TraceChoice

engine_option = partial(option, panel="The engine")
address_option = partial(option, panel="Addresses and data")


HELP = """Serve a model on this machine: gateway, control plane and replicas, until Ctrl-C.

\b
Examples:
  penstock serve
  penstock serve ./my-model --replicas 2 --open --gateway 0.0.0.0:8080
  penstock serve Qwen/Qwen2.5-0.5B-Instruct --engine-arg max_model_len=4096
  penstock serve --engine simulated --engine-args "tokens_per_second=50"

A deployment of the name that is stored already stays as it was left (`penstock set`, `scale`):
what is said here, or in the environment, changes it, and is printed. `--engine-arg KEY=` takes a
setting away; `penstock delete NAME` forgets it all.
"""


class EngineName(StrEnum):
    """What answers."""

    VLLM = "vllm"
    SIMULATED = "simulated"
    BEDROCK = "bedrock"
    OPENAI = "openai"
    CANNED = "canned"


Model = Annotated[
    str,
    typer.Argument(
        envvar="PENSTOCK_MODEL",
        help="A directory, a Hugging Face id, or what comes with Penstock: penstock-mini, "
        "which talks, or penstock-embed, which makes embeddings.",
    ),
]
Engine = Annotated[
    EngineName,
    engine_option(
        "ENGINE",
        "simulated answers without a model: for tests and load benchmarks. bedrock and openai"
        " ask a provider, canned answers a text.",
    ),
]
Replicas = Annotated[int, engine_option("REPLICAS", "Processes that answer.", min=1)]
EngineArg = Annotated[
    list[str] | None,
    engine_option(
        "ENGINE_ARG",
        "A setting of the engine, such as max_model_len=2048. Repeatable.",
        metavar="KEY=VALUE",
    ),
]
EngineArgs = Annotated[
    str, engine_option("ENGINE_ARGS", "Several of them in one string.", metavar='"KEY=VALUE ..."')
]
Adapters = Annotated[
    list[str] | None,
    engine_option(
        "ADAPTERS",
        "A LoRA adapter, answered with under MODEL:ALIAS. Repeatable.",
        metavar="ALIAS=NAME@VERSION=SOURCE",
    ),
]
MaxAdapters = Annotated[
    int,
    engine_option(
        "MAX_ADAPTERS",
        "LoRA adapters that a replica holds at once. 0: none, or four where any are named.",
        min=0,
    ),
]
MaxAdapterRank = Annotated[
    int, engine_option("MAX_ADAPTER_RANK", "The largest rank of an adapter. 0: 16.", min=0)
]
Settings = Annotated[
    list[str] | None,
    engine_option(
        "SET",
        "A limit of the deployment, such as max_queued=100: `penstock set --help` names them."
        " Repeatable.",
        "--set",
        metavar="KEY=VALUE",
    ),
]
Name = Annotated[
    str | None, option("NAME", 'What clients say as "model". Default: made from MODEL.')
]
GatewayAddress = Annotated[str, address_option("GATEWAY", "The OpenAI API.")]
AdminAddress = Annotated[str, address_option("ADMIN", "The admin API.")]
RpcAddress = Annotated[
    str, address_option("RPC", "Where the head serves gateways and node agents.")
]
MetricsAddress = Annotated[
    str, address_option("METRICS", "The gateway's metrics and status pages.", "--gateway-metrics")
]
HeadMetrics = Annotated[str, address_option("HEAD_METRICS", "The head's metrics; empty: none.")]
NodeMetrics = Annotated[
    str,
    address_option("NODE_METRICS", "The metrics of this machine and of its replicas; empty: none."),
]
GatewayThreads = Annotated[
    int | None,
    address_option(
        "GATEWAY_THREADS", "I/O threads of the gateway. Default: one for each core.", min=1
    ),
]
GatewayBinary = Annotated[
    Path | None,
    address_option(
        "GATEWAY_BINARY",
        "The gateway program. Default: the one built in this checkout, or on PATH.",
    ),
]
TlsCert = Annotated[Path | None, security_option("GATEWAY_TLS_CERT", CERT_OF_CLIENTS)]
TlsKey = Annotated[Path | None, security_option("GATEWAY_TLS_KEY", "PEM file: its private key.")]


def asked(
    context: typer.Context,
    model: Model = serve_options.DEFAULT_MODEL,
    engine: Engine = EngineName.VLLM,
    replicas: Replicas = 1,
    engine_arg: EngineArg = None,
    engine_args: EngineArgs = "",
    adapter: Adapters = None,
    max_adapters: MaxAdapters = 0,
    max_adapter_rank: MaxAdapterRank = 0,
    settings: Settings = None,
    name: Name = None,
    gateway: GatewayAddress = GATEWAY_ADDRESS,
    admin: AdminAddress = ADMIN_ADDRESS,
    rpc: RpcAddress = RPC_ADDRESS,
    metrics: MetricsAddress = METRICS_ADDRESS,
    head_metrics: HeadMetrics = HEAD_METRICS_ADDRESS,
    node_metrics: NodeMetrics = NODE_METRICS_ADDRESS,
    data_dir: DataDir = Path(DATA_DIR),
    public_url: PublicUrl = "",
    gateway_threads: GatewayThreads = None,
    gateway_binary: GatewayBinary = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    open_gateway: OpenGateway = False,
    allow_host: AllowHosts = None,
    client_addresses: ClientAddresses = True,
    cors_origin: CorsOrigins = None,
    trace_sample: TraceSample = 0.0,
    trace_slow_ms: TraceSlowMs = 0,
    explain_budget_bytes: ExplainBudgetBytes = None,
    allow_model_code: AllowModelCode = False,
    start_limit: StartLimit = START_SECONDS,
    adapter_cache_gib: AdapterCacheGib = ADAPTER_CACHE_GIB,
    secrets_dir: SecretsDir = None,
    provider_hosts: ProviderHosts = "",
    warm: Warm = AUTO,
    program_modules: ProgramModules = "",
    take_over: TakeOver = False,
    log_level: Verbosity = LogLevel.INFO,
    log_keep_gib: LogKeepGib = LOGS.gib,
    log_keep_days: LogKeepDays = LOGS.days,
) -> serve_options.ServeOptions:
    """What the command line and the environment ask for."""
    return serve_options.ServeOptions(
        model=serve_options.resolve_model(model) if engine is EngineName.VLLM else model,
        name=name or serve_options.deployment_name(model),
        data_dir=data_dir.resolve(),
        engine=engine,
        replicas=replicas,
        engine_args=serve_options.parse_engine_args(engine_arg or [], engine_args),
        adapters=serve_options.adapters_of(model, adapter),
        max_adapters=max_adapters,
        max_adapter_rank=max_adapter_rank,
        settings=parse_settings(settings or ()),
        said=frozenset(filter(partial(_is_said, context), serve_options.SAID)),
        gateway=gateway,
        admin=admin,
        rpc=rpc,
        metrics=metrics,
        head_metrics=head_metrics,
        node_metrics=node_metrics,
        gateway_tls=gateway_tls(tls_cert, tls_key),
        public_url=public_url,
        open_gateway=open_gateway,
        allow_hosts=tuple(allow_host or ()),
        client_addresses=client_addresses,
        cors_origins=tuple(cors_origin or ()),
        traces=TraceChoice(trace_sample, trace_slow_ms),
        explain_budget_bytes=explain_budget_bytes,
        allow_model_code=allow_model_code,
        start_limit=timedelta(seconds=start_limit),
        adapter_cache_gib=adapter_cache_gib,
        secrets_dir=secrets_dir and secrets_dir.expanduser().resolve(),
        provider_hosts=split_hosts(provider_hosts),
        warm=warm_members(warm),
        program_modules=split_modules(program_modules),
        gateway_threads=gateway_threads,
        gateway_binary=gateway_binary,
        take_over=take_over,
        node_id=socket.gethostname(),
        log_level=log_level,
        logs=LogRetention(log_keep_gib, log_keep_days),
    )


def _is_said(context: typer.Context, name: str) -> bool:
    """Whether the command line or the environment names it."""
    source = context.get_parameter_source(name)  # of a click that typer brings along
    return source is not None and source.name != "DEFAULT"


def serving(
    verb: str, ask: Callable[..., serve_options.ServeOptions], told: str
) -> Callable[..., None]:
    """A command that serves what its parameters, which are those of `ask`, ask for."""

    def command(**said: Any) -> None:
        with loading():
            from penstock.control.serving.run import run_serve  # starts faster for every other verb

        with explained(verb):
            finish(asyncio.run(run_serve(ask(**said), ToughConsole())))

    signature = inspect.signature(ask, eval_str=True)
    command.__name__ = verb
    command.__doc__ = told
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {name: each.annotation for name, each in signature.parameters.items()}
    return command


serve = serving("serve", asked, HELP)
