"""Structured logs: one JSON object per line on stderr. Prompts and bodies are never logged."""

from __future__ import annotations

import logging
import sys

from pythonjsonlogger.json import JsonFormatter

ERROR_PREFIX = "penstock-replica: error: "


def configure_logs(replica_id: str, level: str) -> None:
    """Sends every logger's records to stderr; `replica_id` stands in each line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonFormatter(
            "%(levelname)s %(name)s %(message)s",
            rename_fields={"levelname": "level", "name": "logger"},
            static_fields={"process": "replica", "replica_id": replica_id},
            timestamp=True,
        )
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def tell_end(reason: str) -> None:
    """The last line of a process that cannot go on; its node agent shows it."""
    line = " ".join(reason.split())
    sys.stderr.write(f"{ERROR_PREFIX}{line}\n")
    sys.stderr.flush()


__all__ = ["ERROR_PREFIX", "configure_logs", "tell_end"]
