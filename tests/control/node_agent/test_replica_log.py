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


def test_no_log_is_no_error(log: Path) -> None:
    assert replica_log.last_error(log) == ""
    assert replica_log.tail(log, 3) == []


def test_a_new_start_keeps_the_previous_log(log: Path) -> None:
    for word in ("one", "two"):
        replica_log.begin(log)
        log.write_text(word)
    assert log.read_text() == "two"
    assert log.with_name("r-1.log.1").read_text() == "one"


def test_a_log_that_grew_too_long_goes_on_at_its_beginning(log: Path) -> None:
    with log.open("ab", buffering=0) as writer:
        writer.write(b"x" * 100)
        replica_log.bound(log, max_bytes=50)
        writer.write(b"more")
    assert log.read_bytes() == b"more"
    assert log.with_name("r-1.log.1").read_bytes() == b"x" * 100


def test_the_tail_of_a_huge_log_is_found_without_reading_it_all(log: Path) -> None:
    log.write_text("noise\n" * 100_000 + "the end\n\n")
    assert replica_log.tail(log, 2) == ["noise", "the end"]
