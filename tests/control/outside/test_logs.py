"""Lines of the log look alike, whichever process writes them."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.control.outside import logs as of_control
from penstock.control.router import logs as of_programs
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


@pytest.mark.parametrize("word", [of_replicas.level_word, of_programs.level_word])
def test_a_level_is_one_of_four_words(word: Callable[[int], str]) -> None:
    levels = (1, logging.DEBUG, logging.INFO, 25, logging.WARNING, logging.ERROR, logging.CRITICAL)
    assert [word(level) for level in levels] == [
        *("debug", "debug", "info", "info", "warning", "error", "error")
    ]


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, as it was afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    root.handlers[:], root.level = handlers, level


def test_what_is_logged_stands_in_a_file_too_as_long_as_it_is_wanted(
    root: logging.Logger, tmp_path: Path
) -> None:
    of_control.configure_logs("head", "info")
    file = tmp_path / "logs" / "head.log"
    with of_control.kept_in(file):
        logging.getLogger("x").info("kept")
    logging.getLogger("x").info("not kept")
    (line,) = file.read_text().splitlines()
    assert json.loads(line)["message"] == "kept"


def test_what_stderr_writes_to_the_file_is_not_written_twice(
    root: logging.Logger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "head.log"
    with file.open("a") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        of_control.configure_logs("head", "info")
        with of_control.kept_in(file):
            logging.getLogger("x").info("once")
    assert len(file.read_text().splitlines()) == 1
