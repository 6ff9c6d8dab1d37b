"""Structured logs: one JSON object per line on stderr. Prompts and bodies are never logged."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any

from pythonjsonlogger.json import JsonFormatter

ERROR_PREFIX = "penstock-replica: error: "


class LineFormatter(JsonFormatter):
    """A line as the gateway's are: the time in UTC to the millisecond, levels in small letters."""

    def __init__(self, **always: object) -> None:
        names = {"levelname": "level", "name": "logger"}
        fields = "%(levelname)s %(name)s %(message)s"
        super().__init__(fields, rename_fields=names, static_fields=always)

    def add_fields(
        self,
        log_data: dict[str, Any],
        record: logging.LogRecord,
        message_dict: dict[str, Any],
    ) -> None:
        """Puts the time first."""
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        log_data["time"] = when.replace("+00:00", "Z")
        super().add_fields(log_data, record, message_dict)
        log_data["level"] = level_word(record.levelno)


def level_word(level: int) -> str:
    """As all processes say it: "debug", "info", "warning" or "error"."""
    words = ((logging.ERROR, "error"), (logging.WARNING, "warning"), (logging.INFO, "info"))
    return next((word for least, word in words if level >= least), "debug")


def configure_logs(replica_id: str, level: str) -> None:
    """Sends every logger's records to stderr; `replica_id` stands in each line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(process="replica", replica_id=replica_id))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # Ours by itself: while vLLM makes its app, something sets the root's level to "error".
    logging.getLogger("penstock").setLevel(level.upper())


def tell_end(reason: str) -> None:
    """The last line of a process that cannot go on; its node agent shows it."""
    line = " ".join(reason.split())
    sys.stderr.write(f"{ERROR_PREFIX}{line}\n")
    sys.stderr.flush()
