"""The log files of replicas."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.control.node_agent import replica_log


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "r-1.log"


def test_the_last_error_line_is_what_counts(log: Path) -> None:
    log.write_text(
        "penstock-replica: error: first\n"
        '{"message": "cleaning up"}\n'
        "penstock-replica: error: no such model: x\n"
        "WARNING some library says goodbye\n"
    )
    assert replica_log.last_error(log) == "no such model: x"


def test_a_traceback_shows_its_exception(log: Path) -> None:
    log.write_text("Traceback (most recent call last):\n  File x\nModuleNotFoundError: No torch\n")
    assert replica_log.last_error(log) == "ModuleNotFoundError: No torch"


@pytest.mark.parametrize("text", ["", '{"message": "hello"}\n', "INFO 11-21 engine is ready\n"])
def test_ordinary_lines_are_no_error(log: Path, text: str) -> None:
    log.write_text(text)
    assert replica_log.last_error(log) == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"level": "error", "message": "x"}\npenstock-replica: error: no model\n', "no model"),
        (
            '{"level": "error", "message": "no core", "exc_info": "Traceback\\nKeyError: 1"}\n'
            '{"level": "info", "message": "loading"}\n',
            "no core KeyError: 1",
        ),
        ('{"level": "info", "message": "loading the model"}\nrubbish\n[1]\n', "loading the model"),
        ("Segmentation fault\n", "Segmentation fault"),
        ("", ""),
    ],
)
def test_what_one_said_last_that_others_ended(log: Path, text: str, words: str) -> None:
    log.write_text(text)
    assert replica_log.last_words(log) == words


def test_no_log_is_no_error(log: Path) -> None:
    assert replica_log.last_error(log) == ""
