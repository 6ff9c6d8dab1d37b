"""Log files are kept, and kept within bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.control import log_files


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "gateway.log"


def test_a_new_start_keeps_the_previous_log(log: Path) -> None:
    for word in ("one", "two"):
        log_files.begin(log)
        log.write_text(word)
    assert log.read_text() == "two"
    assert log.with_name("gateway.log.1").read_text() == "one"


def test_a_log_that_grew_too_long_goes_on_at_its_beginning(log: Path) -> None:
    with log.open("ab", buffering=0) as writer:
        writer.write(b"x" * 100)
        log_files.bound(log, max_bytes=50)
        writer.write(b"more")
    assert log.read_bytes() == b"more"
    assert log.with_name("gateway.log.1").read_bytes() == b"x" * 100


def test_the_tail_of_a_huge_log_is_found_without_reading_it_all(log: Path) -> None:
    log.write_text("noise\n" * 100_000 + "the end\n\n")
    assert log_files.tail(log, 2) == ["noise", "the end"]


def test_a_full_disk_is_known(log: Path) -> None:
    assert not log_files.no_room(log)
    assert not log_files.no_room(log.parent / "nowhere" / "x.log")
    assert log_files.no_room(Path("/proc/version"))  # of a file system without free blocks


def test_a_log_that_is_not_there_has_no_tail_and_needs_no_bound(log: Path) -> None:
    log_files.bound(log, max_bytes=1)
    assert log_files.tail(log, 3) == []


def test_where_the_previous_log_cannot_be_kept_the_log_is_bounded_all_the_same(log: Path) -> None:
    log.with_name("gateway.log.1").symlink_to("/dev/full")
    log.write_text("x" * 100)
    log_files.bound(log, max_bytes=50)
    assert log.read_text() == ""
    assert not log.with_name("gateway.log.1").exists()


def test_a_place_where_nothing_can_be_written_is_told_and_holds_up_nothing(log: Path) -> None:
    assert log_files.begin(log) == ""
    below_a_file = log / "below.log"
    assert log_files.begin(below_a_file).startswith(f"{below_a_file} cannot be written")
    log_files.bound(below_a_file, max_bytes=0)
    assert not log_files.no_room(below_a_file)
