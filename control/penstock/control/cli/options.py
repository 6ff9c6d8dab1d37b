"""Options that several verbs share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from penstock.control.settings import ADMIN_ADDRESS, START_LIMIT

SECURITY_PANEL = "Who may call"


class LogLevel(StrEnum):
    """How much the processes log."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


DataDir = Annotated[
    Path,
    typer.Option(envvar="PENSTOCK_DATA_DIR", help="Where everything is kept: store, logs, state."),
]
Verbosity = Annotated[
    LogLevel, typer.Option(envvar="PENSTOCK_LOG_LEVEL", help="How much the processes log.")
]

LogKeepGib = Annotated[
    float,
    typer.Option(
        envvar="PENSTOCK_LOG_KEEP_GIB",
        metavar="GIB",
        help="How much the log files of --data-dir may take together; beyond it the oldest go.",
    ),
]
LogKeepDays = Annotated[
    float,
    typer.Option(
        envvar="PENSTOCK_LOG_KEEP_DAYS",
        metavar="DAYS",
        help="How long log files are kept that nobody writes to any more.",
    ),
]

AdminUrl = Annotated[
    str | None,
    typer.Option(
        envvar="PENSTOCK_ADMIN",
        help="host:port or URL of the admin API. Default: as head.json in --data-dir says, else"
        f" {ADMIN_ADDRESS}.",
    ),
]
AdminTokenFile = Annotated[
    Path | None,
    typer.Option(
        envvar="PENSTOCK_ADMIN_TOKEN_FILE",
        help="Holds a token for the admin API. Default: admin.token in --data-dir.",
    ),
]
NodeId = Annotated[
    str,
    typer.Option(envvar="PENSTOCK_NODE_ID", help="This machine's name; stays the same for ever."),
]
Zone = Annotated[
    str,
    typer.Option(
        envvar="PENSTOCK_ZONE",
        help="Where this machine is, in your words: gateways prefer replicas of their zone.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether it is meant.")]
ClusterTokenFile = Annotated[
    Path | None,
    typer.Option(
        envvar="PENSTOCK_CLUSTER_TOKEN_FILE",
        rich_help_panel=SECURITY_PANEL,
        help="What the cluster's processes show to each other, mode 0600. Default: cluster.token in"
        " --data-dir, which the head's first start makes.",
    ),
]
TlsCert = Annotated[
    Path | None,
    typer.Option(
        envvar="PENSTOCK_TLS_CERT",
        rich_help_panel=SECURITY_PANEL,
        help="PEM file: the certificate, with those above it, that is shown to callers.",
    ),
]
TlsKey = Annotated[
    Path | None,
    typer.Option(
        envvar="PENSTOCK_TLS_KEY", rich_help_panel=SECURITY_PANEL, help="PEM file: its private key."
    ),
]
TlsCa = Annotated[
    Path | None,
    typer.Option(
        envvar="PENSTOCK_TLS_CA",
        rich_help_panel=SECURITY_PANEL,
        help="PEM file: who signed the certificates of those that this process calls.",
    ),
]
GATEWAY_TLS_CERT = "PENSTOCK_GATEWAY_TLS_CERT"
GATEWAY_TLS_KEY = "PENSTOCK_GATEWAY_TLS_KEY"
CERT_OF_CLIENTS = (
    "PEM file: the certificate, with those above it, that the gateway shows its clients. With it"
    " the gateway speaks HTTPS; it is read again when it changes."
)
OpenGateway = Annotated[
    bool,
    typer.Option(
        "--open",
        envvar="PENSTOCK_OPEN",
        rich_help_panel=SECURITY_PANEL,
        help="Let the gateway serve whoever reaches it beyond the loopback, too, until the first"
        " API key is made. Without it a request without a key is answered 401 there.",
    ),
]
ClientAddresses = Annotated[
    bool,
    typer.Option(
        "--client-addresses/--no-client-addresses",
        envvar="PENSTOCK_CLIENT_ADDRESSES",
        rich_help_panel=SECURITY_PANEL,
        help="Whether the gateway's log says from which address each request came.",
    ),
]
CorsOrigins = Annotated[
    list[str] | None,
    typer.Option(
        "--cors-origin",
        envvar="PENSTOCK_CORS_ORIGIN",
        metavar="ORIGIN",
        rich_help_panel=SECURITY_PANEL,
        help="Web pages of this origin, https://chat.example, may call the gateway; '*': any"
        " page. Repeatable.",
    ),
]
AllowHosts = Annotated[
    list[str] | None,
    typer.Option(
        envvar="PENSTOCK_ALLOW_HOST",
        metavar="NAME",
        rich_help_panel=SECURITY_PANEL,
        help="A name that admin API and gateway are called by, beside localhost and their own"
        " addresses. Repeatable.",
    ),
]
AllowModelCode = Annotated[
    bool,
    typer.Option(
        "--allow-model-code",
        envvar="PENSTOCK_ALLOW_MODEL_CODE",
        rich_help_panel=SECURITY_PANEL,
        help="Take engine arguments that run code which comes with a model,"
        " such as trust_remote_code.",
    ),
]
StartLimit = Annotated[
    float,
    typer.Option(
        envvar="PENSTOCK_START_LIMIT",
        metavar="SECONDS",
        help="From a replica's start to ready, where its deployment says nothing. The first start"
        " of a model downloads it.",
    ),
]
START_SECONDS = START_LIMIT.total_seconds()
SecretsDir = Annotated[
    Path | None,
    typer.Option(
        envvar="PENSTOCK_SECRETS_DIR",
        rich_help_panel=SECURITY_PANEL,
        help="Below it lie the keys of managed providers, which deployments name by api_key_file."
        " Default: secrets in --data-dir, made with mode 0700.",
    ),
]
ProviderHosts = Annotated[
    str,
    typer.Option(
        envvar="PENSTOCK_PROVIDER_HOSTS",
        metavar="HOST,...",
        rich_help_panel=SECURITY_PANEL,
        help="Replicas of managed providers on this machine send keys and prompts to these hosts"
        " alone; *.amazonaws.com: all below. Default: anywhere.",
    ),
]
AdapterCacheGib = Annotated[
    float,
    typer.Option(
        envvar="PENSTOCK_ADAPTER_CACHE_GIB",
        metavar="GIB",
        min=0,
        help="How much of the adapters that were fetched from the head is kept on this machine;"
        " beyond it, what no replica here uses goes.",
    ),
]
ExistingStore = Annotated[
    bool,
    typer.Option(
        "--existing-store",
        envvar="PENSTOCK_EXISTING_STORE",
        help="Do not start where --data-dir holds no store, as when its disk is not mounted. For"
        " all starts but the first.",
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
