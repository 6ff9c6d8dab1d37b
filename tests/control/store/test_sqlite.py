"""What only a file can show: it outlives its process, and damage is named."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.control.errors import CannotStart, Code, StoreUnavailable
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.state.routing.snapshot import routes_of
from penstock.control.state.tenancy.usage import Counts, Reading, UsageKey
from penstock.control.store.sqlite import SqliteStore
from penstock.control.store.store import Author, Change, Key
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_errors import raises_code
from tests.fakes.control_values import NOON

KEY = Key("deployment", "a")
AUTHOR = Author("admin", "test")

WRITER = """
import asyncio, os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from penstock.control.store.sqlite import SqliteStore
from penstock.control.store.store import Author, Change, Key

async def main():
    store = await SqliteStore.open(Path(sys.argv[1]))
    for n in range(50):
        change = Change(Key("deployment", "a"), {"n": n})
        await store.apply([change], Author("test", "write"), datetime.now(UTC))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""

READING = Reading(NOON.date(), "i", UsageKey("acme", "key_1", "mini", ""), Counts(1))
USAGE_WRITER = """
import asyncio, os, signal, sys
from datetime import date
from pathlib import Path
from penstock.control.state.tenancy.usage import Counts, Reading, UsageKey
from penstock.control.store.sqlite import SqliteStore

async def main():
    store = await SqliteStore.open(Path(sys.argv[1]))
    of = UsageKey("acme", "key_1", "mini", "")
    for n in range(1, 51):
        await store.record([Reading(date(2026, 1, 2), "i", of, Counts(n))])
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def meddle(path: Path, statement: str) -> None:
    """Changes the file behind the store's back."""
    db = sqlite3.connect(path)
    db.execute(statement)
    db.close()


@pytest.mark.processes
async def test_what_was_applied_survives_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "penstock.db"
    ended = subprocess.run([sys.executable, "-c", WRITER, str(path)], timeout=60, check=False)
    assert ended.returncode == -9
    store = await SqliteStore.open(path)
    contents = await store.load()
    await store.close()
    assert contents.version == 50
    assert contents.documents[KEY].document == {"n": 49}


async def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "penstock.db"
    path.write_bytes(b"this is no database, but it is long enough" * 100)
    with raises_code(Code.STORE_CORRUPTED, match=f"the store {path} is damaged"):
        await SqliteStore.open(path)


async def test_damage_in_the_middle_of_the_file_is_found_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "penstock.db"
    store = await SqliteStore.open(path)
    for n in range(200):
        await store.apply([Change(Key("d", str(n)), {"text": "x" * 500})], AUTHOR, NOON)
    await store.close()
    content = bytearray(path.read_bytes())
    content[4096 * 3 : 4096 * 20] = b"\xa5" * (4096 * 17)
    path.write_bytes(content)
    with raises_code(Code.STORE_CORRUPTED, match=str(path)):
        await SqliteStore.open(path)


async def test_an_empty_file_is_no_store_where_there_was_one(tmp_path: Path) -> None:
    path = tmp_path / "penstock.db"
    path.touch()
    with raises_code(Code.STORE_CORRUPTED, match="it is empty"):
        await SqliteStore.open(path, existed=True)
    await (await SqliteStore.open(path)).close()
    await (await SqliteStore.open(path, existed=True)).close()


async def test_counts_of_an_instance_that_was_not_heard_for_long_are_forgotten(
    tmp_path: Path,
) -> None:
    path = tmp_path / "penstock.db"
    store = await SqliteStore.open(path)
    for days, instance in ((0, "gone"), (0, "lives"), (60, "lives"), (91, "lives")):
        day = NOON.date() + timedelta(days=days)
        await store.record([READING._replace(day=day, instance=instance)])
    await store.close()
    db = sqlite3.connect(path)
    found = db.execute("SELECT instance, requests FROM usage_seen").fetchall()
    (total,) = db.execute("SELECT sum(requests) FROM usage").fetchone()
    db.close()
    assert (found, total) == ([("lives", 1)], 2)


@pytest.mark.processes
async def test_usage_that_was_recorded_survives_kill_9_with_what_was_seen(tmp_path: Path) -> None:
    path = tmp_path / "penstock.db"
    script = USAGE_WRITER
    ended = subprocess.run([sys.executable, "-c", script, str(path)], timeout=60, check=False)
    assert ended.returncode == -9
    store = await SqliteStore.open(path)
    await store.record([READING._replace(counts=Counts(51))])
    assert [row.counts for row in await store.usage(NOON.date(), NOON.date())] == [Counts(51)]
    await store.close()


async def test_writing_stays_cheap_while_the_audit_trail_grows(tmp_path: Path) -> None:
    path = tmp_path / "penstock.db"
    await (await SqliteStore.open(path)).close()
    db = sqlite3.connect(path)
    (plan,) = db.execute("EXPLAIN QUERY PLAN DELETE FROM audit WHERE version <= 1").fetchall()
    db.close()
    assert "USING INDEX audit_version" in plan[-1]


async def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotStart, match="cannot open the store"):
        await SqliteStore.open(tmp_path / "file" / "penstock.db")


async def test_a_store_that_fails_later_is_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "penstock.db"
    store = await SqliteStore.open(path)
    meddle(path, "DROP TABLE documents")
    with pytest.raises(StoreUnavailable, match="no such table"):
        await store.apply([Change(KEY, {})], AUTHOR, NOON)
    assert await store.audit(1) == []
    await store.close()


async def test_what_is_asked_of_a_closed_store_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "penstock.db"
    store = await SqliteStore.open(path)
    await store.close()
    with pytest.raises(StoreUnavailable, match=f"the store {path} is closed"):
        await store.load()


async def test_a_store_that_found_no_room_writes_again_once_there_is_some(tmp_path: Path) -> None:
    path = tmp_path / "full.db"
    await (await SqliteStore.open(path)).close()
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    store = SqliteStore(path, ThreadPoolExecutor(1), db)
    key, author = Key("node", "n"), Author("test", "test")
    large = Change(key, {"text": "x" * 1_000_000})
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    db.execute(f"PRAGMA max_page_count = {pages + 3}")
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="is full"):
            await store.apply([Change(Key("node", "small"), {}), large], author, NOON)
    assert (await store.load()).documents == {}
    db.execute("PRAGMA max_page_count = 100000")
    await store.apply([large], author, NOON)
    assert list((await store.load()).documents) == [key]
    await store.close()


async def test_where_it_cannot_be_read_who_may_come_without_a_key_nobody_may(
    tmp_path: Path,
) -> None:
    store = await SqliteStore.open(tmp_path / "penstock.db")
    await store.apply([Change(Key("access", "all"), {"what": "?"})], AUTHOR, NOON)
    cluster = ClusterStore(store, ManualClock())
    await cluster.restore()
    assert routes_of(cluster.view()).keys_required
    assert "access 'all'" in cluster.view().unreadable[0]
    await store.close()
