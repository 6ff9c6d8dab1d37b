"""A store is copied whole while it is written to, and put back."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from penstock.control.errors import CannotStart, Code
from penstock.control.store import sqlite_backup
from penstock.control.store.sqlite import SqliteStore
from penstock.control.store.store import Author, Change, Key
from tests.fakes.control_errors import raises_code
from tests.fakes.control_values import NOON

ME = Author("me", "try it")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "penstock.db"


async def put(store: SqliteStore, name: str) -> None:
    await store.apply([Change(Key("thing", name), {"is": name})], ME, NOON)


async def names(path: Path) -> set[str]:
    store = await SqliteStore.open(path)
    found = {key.name for key in (await store.load()).documents}
    await store.close()
    return found


async def test_a_copy_has_what_a_running_store_has_not_yet_in_its_file(
    path: Path, tmp_path: Path
) -> None:
    store, copy, bare = await SqliteStore.open(path), tmp_path / "copy.db", tmp_path / "bare.db"
    await put(store, "one")
    shutil.copyfile(path, bare)
    made = sqlite_backup.back_up(path, copy)
    await put(store, "two")
    await store.close()
    assert (made.revision, made.at) == (1, NOON.isoformat())
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bare.db", "copy.db", "penstock.db"]
    assert copy.stat().st_mode & 0o777 == 0o600
    assert await names(copy) == {"one"}
    assert await names(bare) == set()


async def test_a_copy_takes_a_stores_place_and_what_was_there_is_kept(
    path: Path, tmp_path: Path
) -> None:
    store, copy = await SqliteStore.open(path), tmp_path / "copy.db"
    await put(store, "one")
    await store.close()
    sqlite_backup.back_up(path, copy)
    store = await SqliteStore.open(path)
    await put(store, "two")
    for suffix in ("", "-wal", "-shm"):  # as a kill leaves them
        shutil.copyfile(f"{path}{suffix}", f"{tmp_path / 'killed.db'}{suffix}")
    await store.close()
    path.unlink()
    for suffix in ("", "-wal", "-shm"):
        Path(f"{tmp_path / 'killed.db'}{suffix}").rename(f"{path}{suffix}")
    assert sqlite_backup.restore(copy, path).revision == 1
    assert await names(path) == {"one"}
    assert await names(path.with_name("penstock.db.replaced")) == {"one", "two"}
    again = sqlite_backup.restore(copy, path)
    assert again.kept == path.with_name("penstock.db.replaced1")
    assert await names(path.with_name("penstock.db.replaced")) == {"one", "two"}


def test_what_is_no_store_is_refused_and_nothing_is_touched(path: Path, tmp_path: Path) -> None:
    copy, other = tmp_path / "copy.db", tmp_path / "other.db"
    with raises_code(Code.INVALID_SETTING, match=r"there is no store .*penstock.db: name"):
        sqlite_backup.back_up(path, copy)
    with raises_code(Code.INVALID_SETTING, match=r"there is no backup .*copy.db"):
        sqlite_backup.restore(copy, path)
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE t (x)")
    with raises_code(
        Code.INVALID_SETTING, match=r"other.db is no store of Penstock .* has nothing"
    ):
        sqlite_backup.restore(other, path)
    with closing(sqlite3.connect(other)) as db:
        db.execute("PRAGMA user_version = 99")
    with raises_code(Code.INVALID_SETTING, match="it has format 99, this version knows"):
        sqlite_backup.restore(other, path)
    other.write_text("no database at all, but long enough to be looked at" * 100)
    with pytest.raises(CannotStart, match=r"other.db cannot be copied to"):
        sqlite_backup.restore(other, path)
    with raises_code(Code.INVALID_SETTING, match=r"other.db exists, nothing is written"):
        sqlite_backup.back_up(other, other)
    assert list(tmp_path.iterdir()) == [other]
