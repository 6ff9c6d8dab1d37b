"""Options that several verbs share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


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
