"""Options that several verbs share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

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

AdminUrl = Annotated[
    str, typer.Option(envvar="PENSTOCK_ADMIN", help="host:port or URL of the admin API.")
]
AdminTokenFile = Annotated[
    Path | None,
    typer.Option(
        envvar="PENSTOCK_ADMIN_TOKEN_FILE",
        help="Holds a token for the admin API. Default: admin.token in --data-dir.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]
ClusterTokenFile = Annotated[
    Path | None,
    typer.Option(
        envvar="PENSTOCK_CLUSTER_TOKEN_FILE",
        rich_help_panel=SECURITY_PANEL,
        help="What the cluster's processes prove to each other that they belong together."
        " Mode 0600.",
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
