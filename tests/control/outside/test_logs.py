"""Lines of the log look alike, whichever process writes them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

import pytest

from penstock.control.outside import logs as of_control
from penstock.replica import logs as of_replicas


@pytest.mark.parametrize("formatter", [of_control.LineFormatter, of_replicas.LineFormatter])
def test_a_line_has_time_and_level_as_the_gateways_have(
    formatter: Callable[..., logging.Formatter],
) -> None:
    # Not by `makeLogRecord`: vLLM, once imported, has its records carry a field of its own.
    record = logging.LogRecord("penstock.x", logging.WARNING, "", 0, "%d lost", (3,), None)
    record.pid = 7
    record.created = 1769860800.1239
    line = json.loads(formatter(process="head").format(record))
    assert list(line) == ["time", "level", "logger", "message", "process", "pid"]
    assert list(line.values()) == [
        "2026-01-31T12:00:00.123Z", "warning", "penstock.x", "3 lost", "head", 7
    ]  # fmt: skip
