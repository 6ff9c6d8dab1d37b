"""Structured logs: one JSON object per line on stderr."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from pythonjsonlogger.json import JsonFormatter

from penstock.control.log_files import opened
from penstock.control.router.logs import level_word


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


def configure_logs(process: str, level: str) -> None:
    """Sends every logger's records to stderr; `process` stands in each line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(process=process))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for chatty in ("httpx", "uvicorn"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


@contextmanager
def kept_in(log: Path) -> Iterator[None]:
    """Has lines stand in this file as well, where `penstock logs` looks for them; not twice where
    stderr goes there."""
    root = logging.getLogger()
    ours = [each for each in root.handlers if isinstance(each.formatter, LineFormatter)]
    if not ours or _is_stderr(log):
        yield
        return
    with TextIOWrapper(opened(log), "utf-8", "backslashreplace") as file:
        handler = logging.StreamHandler(file)
        handler.setFormatter(ours[0].formatter)
        root.addHandler(handler)
        try:
            yield
        finally:
            root.removeHandler(handler)


def _is_stderr(log: Path) -> bool:
    try:
        return os.path.samestat(log.stat(), os.fstat(sys.stderr.fileno()))
    except (OSError, ValueError):  # a test's stderr is no file
        return False
