"""Options that several verbs share."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.control.settings import ADMIN_ADDRESS, START_LIMIT


class LogLevel(StrEnum):
    """How much the processes log."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def option(name: str, help: str, *flags: str, panel: str | None = None, **more: Any) -> Any:
    """An option that the environment may give, too, as PENSTOCK_<name>."""
    return typer.Option(*flags, envvar=f"PENSTOCK_{name}", help=help, rich_help_panel=panel, **more)


security_option = partial(option, panel="Who may call")

DataDir = Annotated[Path, option("DATA_DIR", "Where everything is kept: store, logs, state.")]
Verbosity = Annotated[LogLevel, option("LOG_LEVEL", "How much the processes log.")]

LogKeepGib = Annotated[
    float,
    option(
        "LOG_KEEP_GIB",
        "How much the log files of --data-dir may take together; beyond it the oldest go.",
        metavar="GIB",
    ),
]
LogKeepDays = Annotated[
    float,
    option(
        "LOG_KEEP_DAYS",
        "How long log files are kept that nobody writes to any more.",
        metavar="DAYS",
    ),
]

AdminUrl = Annotated[
    str | None,
    option(
        "ADMIN",
        "host:port or URL of the admin API. Default: as head.json in --data-dir says, else"
        f" {ADMIN_ADDRESS}.",
    ),
]
AdminTokenFile = Annotated[
    Path | None,
    option(
        "ADMIN_TOKEN_FILE", "Holds a token for the admin API. Default: admin.token in --data-dir."
    ),
]
NodeId = Annotated[str, option("NODE_ID", "This machine's name; stays the same for ever.")]
Zone = Annotated[
    str,
    option("ZONE", "Where this machine is, in your words: gateways prefer replicas of their zone."),
]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check everything and change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether it is meant.")]
ClusterTokenFile = Annotated[
    Path | None,
    security_option(
        "CLUSTER_TOKEN_FILE",
        "What the cluster's processes show to each other, mode 0600. Default: cluster.token in"
        " --data-dir, which the head's first start makes.",
    ),
]
TlsCert = Annotated[
    Path | None,
    security_option(
        "TLS_CERT", "PEM file: the certificate, with those above it, that is shown to callers."
    ),
]
TlsKey = Annotated[Path | None, security_option("TLS_KEY", "PEM file: its private key.")]
TlsCa = Annotated[
    Path | None,
    security_option(
        "TLS_CA", "PEM file: who signed the certificates of those that this process calls."
    ),
]
CERT_OF_CLIENTS = (
    "PEM file: the certificate, with those above it, that the gateway shows its clients. With it"
    " the gateway speaks HTTPS; it is read again when it changes."
)
OpenGateway = Annotated[
    bool,
    security_option(
        "OPEN",
        "Let the gateway serve whoever reaches it beyond the loopback, too, until the first"
        " API key is made. Without it a request without a key is answered 401 there.",
        "--open",
    ),
]
PublicUrl = Annotated[
    str,
    option(
        "PUBLIC_URL",
        "Where clients reach a gateway, such as https://llm.example.com/v1: who starts an engine is"
        " told it. Default: the local gateway's address.",
        metavar="URL",
    ),
]
ClientAddresses = Annotated[
    bool,
    security_option(
        "CLIENT_ADDRESSES",
        "Whether the gateway's log says from which address each request came.",
        "--client-addresses/--no-client-addresses",
    ),
]
TraceSample = Annotated[
    float,
    option(
        "TRACE_SAMPLE",
        "Of the requests that bring no trace, those that the gateway sends to the collector that"
        " OTEL_EXPORTER_OTLP_ENDPOINT names: 0 to 1. Failed ones are always sent.",
        metavar="SHARE",
    ),
]
TraceSlowMs = Annotated[
    int, option("TRACE_SLOW_MS", "Likewise, all that take so long; 0: none.", metavar="MS")
]
ExplainBudgetBytes = Annotated[
    int | None,
    option(
        "EXPLAIN_BUDGET_BYTES",
        "How much the gateway keeps of what it decided about requests, for `penstock explain`;"
        " 0: nothing. Default: 16 MiB.",
        metavar="BYTES",
        min=0,
    ),
]
CorsOrigins = Annotated[
    list[str] | None,
    security_option(
        "CORS_ORIGIN",
        "Web pages of this origin, https://chat.example, may call the gateway; '*': any"
        " page. Repeatable.",
        "--cors-origin",
        metavar="ORIGIN",
    ),
]
AllowHosts = Annotated[
    list[str] | None,
    security_option(
        "ALLOW_HOST",
        "A name that admin API and gateway are called by, beside localhost and their own"
        " addresses. Repeatable.",
        metavar="NAME",
    ),
]
AllowModelCode = Annotated[
    bool,
    security_option(
        "ALLOW_MODEL_CODE",
        "Take engine arguments that run code which comes with a model, such as trust_remote_code.",
        "--allow-model-code",
    ),
]
StartLimit = Annotated[
    float,
    option(
        "START_LIMIT",
        "From a replica's start to ready, where its deployment says nothing. The first start"
        " of a model downloads it.",
        metavar="SECONDS",
    ),
]
START_SECONDS = START_LIMIT.total_seconds()
SecretsDir = Annotated[
    Path | None,
    security_option(
        "SECRETS_DIR",
        "Below it lie the keys of managed providers, which deployments name by api_key_file."
        " Default: secrets in --data-dir, made with mode 0700.",
    ),
]
ProviderHosts = Annotated[
    str,
    security_option(
        "PROVIDER_HOSTS",
        "Replicas of managed providers on this machine send keys and prompts to these hosts"
        " alone; *.amazonaws.com: all below. Default: anywhere.",
        metavar="HOST,...",
    ),
]
AdapterCacheGib = Annotated[
    float,
    option(
        "ADAPTER_CACHE_GIB",
        "How much of the adapters that were fetched from the head is kept on this machine;"
        " beyond it, what no replica here uses goes.",
        metavar="GIB",
        min=0,
    ),
]
Warm = Annotated[
    str,
    option(
        "WARM",
        "Processes that have imported vLLM and wait to be a replica of this machine, which is then"
        " ready in a second. auto: 1 where vLLM is built for CPUs and 3 GiB of memory are free.",
        metavar="N",
    ),
]
ProgramsDir = Annotated[
    Path | None,
    option(
        "PROGRAMS_DIR",
        "Where router programs of this machine say how its gateway asks them, as the gateway's flag"
        " of that name; the head's looks into its own --data-dir. Default: programs in --data-dir.",
    ),
]
ProgramModules = Annotated[
    str,
    option(
        "PROGRAM_MODULES",
        "Python modules that router programs of this machine may be, with commas between them."
        " Default: none.",
        metavar="MODULES",
    ),
]
ExistingStore = Annotated[
    bool,
    option(
        "EXISTING_STORE",
        "Do not start where --data-dir holds no store, as when its disk is not mounted. For"
        " all starts but the first.",
        "--existing-store",
    ),
]
TakeOver = Annotated[
    bool,
    typer.Option(
        "--take-over",
        help="Go on with this store though nodes or gateways know another, or a later state of it:"
        " says what it does not know, and makes them follow. For once, after a restored backup.",
    ),
]

Reason = Annotated[
    str, typer.Option(help="Why: kept with what is changed, for those who look later.")
]
Wait = Annotated[
    bool, typer.Option("--wait", help="Follow it until all replicas are ready; 1 where it fails.")
]
Files = Annotated[
    list[str],
    typer.Option(
        "-f", "--file", help="A file, a directory of .yaml, .yml and .json, or - for stdin."
        " Repeatable.",
    ),
]  # fmt: skip
AbortCanary = Annotated[
    bool,
    typer.Option(
        "--abort-canary", help="Abort a canary that has this for itself; it is refused without."
    ),
]
HandOver = Annotated[
    bool,
    typer.Option(
        "--hand-over",
        help="Streams of replicas that leave go on at others at once, not when their time to drain"
        " is up.",
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force", help="Overwrite what others have set since, and try what has failed before."
    ),
]
