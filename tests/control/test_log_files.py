"""Log files: what was is kept, within bounds of size and age."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.control import log_files
from penstock.control.settings import LogRetention

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
MIB = 1 << 20


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "gateway.log"


def keep(mib: float, days: float = 14) -> LogRetention:
    return LogRetention(gib=mib / 1024, days=days)


def closed(log: Path, name: str, mib: int, age: timedelta) -> Path:
    """A file that nobody writes to."""
    path = log.with_name(name)
    path.write_bytes(b"x" * mib * MIB)
    return dated(path, age)


def dated(path: Path, age: timedelta) -> Path:
    written = (NOW - age).timestamp()
    os.utime(path, (written, written))
    return path


def segments(log: Path) -> list[Path]:
    return sorted(log.parent.glob(f"{log.name}.*"))


def test_a_new_start_keeps_all_that_was(log: Path) -> None:
    for word in ("one ", "two ", "three"):
        log_files.begin(log)
        log.write_text(word)
    assert log.read_text() == "three"
    assert "".join(path.read_text() for path in segments(log)) == "one two "


def test_starts_that_say_little_make_one_file_and_those_that_say_much_another(log: Path) -> None:
    for size in (10, 20, log_files.SMALL_BYTES, 30, 0):
        log_files.begin(log)
        log.write_bytes(b"x" * size)
    assert [path.stat().st_size for path in segments(log)] == [30, log_files.SMALL_BYTES, 30]


def test_a_segment_is_named_by_when_it_was_written_last(log: Path) -> None:
    log.write_text("one")
    dated(log, timedelta(milliseconds=-123))
    log_files.begin(log)
    assert segments(log) == [log.with_name("gateway.log.20260131T120000.123Z")]


def test_a_log_that_grew_too_long_goes_on_at_its_beginning(log: Path) -> None:
    with log.open("ab", buffering=0) as writer:
        writer.write(b"x" * 2 * MIB)
        log_files.sweep(log.parent, keep(16), datetime.now(UTC))
        writer.write(b"more")
    assert log.read_bytes() == b"more"
    assert [path.stat().st_size for path in segments(log)] == [2 * MIB]


def test_what_is_older_than_may_be_goes_and_what_is_written_to_stays(log: Path) -> None:
    day = timedelta(days=1)
    with log_files.opened(log):
        dated(log, 30 * day)
        closed(log, "gateway.log.1", 0, 15 * day)
        closed(log, "gone-1.log", 0, 15 * day)
        left = closed(log, "gone-2.log", 0, 13 * day)
        log_files.sweep(log.parent, keep(100), NOW)
        assert sorted(log.parent.iterdir()) == [log, left]
    log_files.sweep(log.parent, keep(100), NOW)
    assert list(log.parent.iterdir()) == [left], "nobody writes to it any more"


def test_the_oldest_of_the_log_that_has_the_most_goes_first(log: Path) -> None:
    with log_files.opened(log), log_files.opened(log.with_name("head.log")) as head:
        head.write(b"x" * MIB)
        head.flush()
        quiet = closed(log, "head.log.1", 1, timedelta(days=3))
        gone = closed(log, "gone-1.log", 1, timedelta(days=3))
        for hours in range(1, 5):
            closed(log, f"gateway.log.{hours}", 1, timedelta(hours=hours))
        log_files.sweep(log.parent, keep(5), NOW)
        assert segments(log) == [log.with_name("gateway.log.1"), log.with_name("gateway.log.2")]
        assert quiet.exists()
        assert gone.exists()


def test_of_very_many_files_the_oldest_go_however_small_they_are(log: Path) -> None:
    for minutes in range(log_files.MOST_FILES + 2):
        closed(log, f"gone-{minutes}.log", 0, timedelta(minutes=minutes))
    log_files.sweep(log.parent, keep(100), NOW)
    left = {path.name for path in log.parent.iterdir()}
    assert left == {f"gone-{minutes}.log" for minutes in range(log_files.MOST_FILES)}


def test_what_a_process_has_open_stays_though_it_took_no_lock(log: Path) -> None:
    old = timedelta(days=30)
    aside = closed(log, "gateway.log.1", 0, old)
    with log.open("ab"), aside.open("ab"):
        dated(log, old)
        log_files.sweep(log.parent, keep(100), NOW)
        assert sorted(log.parent.iterdir()) == [log, aside]
    log_files.sweep(log.parent, keep(100), NOW)
    assert list(log.parent.iterdir()) == []


def test_nothing_but_what_is_written_to_is_kept_where_nothing_is_to_be(log: Path) -> None:
    for retention in (keep(0), keep(100, days=0)):
        closed(log, "gateway.log.1", 1, timedelta(seconds=1))
        with log_files.opened(log):
            log_files.sweep(log.parent, retention, NOW)
        assert list(log.parent.iterdir()) == [log]


def test_one_process_at_a_time_looks_after_a_folder(log: Path) -> None:
    old = closed(log, "gateway.log.1", 0, timedelta(days=15))
    with log_files.alone(log.parent):
        log_files.sweep(log.parent, keep(1), NOW)
        assert old.exists()
    log_files.sweep(log.parent, keep(1), NOW)
    assert not old.exists()


def test_the_tail_of_a_huge_log_is_found_without_reading_it_all(log: Path) -> None:
    log.write_text("noise\n" * 100_000 + "the end\n\n")
    assert log_files.tail(log, 2) == ["noise", "the end"]


def test_a_full_disk_is_known(log: Path) -> None:
    assert not log_files.disk_full(log)
    assert not log_files.disk_full(log.parent / "nowhere" / "x.log")
    assert log_files.disk_full(Path("/proc/version"))  # of a file system without free blocks


def test_a_log_that_is_not_there_has_no_tail_and_needs_no_bound(log: Path) -> None:
    log_files.sweep(log.parent / "nowhere", keep(1), NOW)
    assert log_files.tail(log, 3) == []


def test_a_place_where_nothing_can_be_written_is_told_and_holds_up_nothing(log: Path) -> None:
    assert log_files.begin(log) == ""
    below_a_file = log / "below.log"
    assert log_files.begin(below_a_file).startswith(f"{below_a_file} cannot be written")
    with log_files.opened(below_a_file) as nowhere:
        nowhere.write(b"lost")
    assert not log_files.disk_full(below_a_file)
