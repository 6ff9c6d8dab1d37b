"""A store of an older format is brought to today's, one of a newer is refused by name."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from penstock.control.errors import CannotStart
from penstock.control.state.cluster import ClusterView
from penstock.control.store import sqlite_formats
from penstock.control.store.documents import changes_between, view_of
from penstock.control.store.sqlite import SqliteStore
from penstock.control.store.store import Author, Change, Document, Key
from tests.fakes.control_values import NOON

# Of states that last no longer than a head; and what is none any more.
LEFT_OUT = ("since", "assigned_at", "bindings")

OLDEST = Path(__file__).parents[2] / "upgrade" / "base_store.sql"  # that is still read


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store as the oldest head left it whose stores are read."""
    path = tmp_path / "penstock.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(OLDEST.read_text())
    return path


def looked_at(path: Path) -> tuple[int, int]:
    """The least format that one has to know, and the format."""
    with closing(sqlite3.connect(path)) as db:
        return db.execute("PRAGMA user_version").fetchone()[0], sqlite_formats.found(db)


async def contents(path: Path) -> dict[Key, Document]:
    store = await SqliteStore.open(path)
    found = {key: stored.document for key, stored in (await store.load()).documents.items()}
    await store.close()
    return found


async def test_the_base_s_store_is_brought_to_today_s_format_after_a_copy(path: Path) -> None:
    before = path.with_name("penstock.db.format-4")
    found = await contents(path)
    assert Key("deployment", "sim") in found
    assert looked_at(path) == (sqlite_formats.READABLE, sqlite_formats.FORMAT)
    assert looked_at(before) == (4, 4)
    assert before.stat().st_mode & 0o777 == 0o600
    before.unlink()
    assert await contents(path) == found
    assert not before.exists(), "it is brought there once"
    assert await contents_of_copy(path) == found


async def test_every_document_of_the_base_is_read_and_written_as_it_was(path: Path) -> None:
    store = await SqliteStore.open(path)
    found = await store.load()
    await store.close()
    view = view_of(found, NOON)
    assert view.unreadable == ()
    written = {each.key: each.document for each in changes_between(ClusterView(), view)}
    assert {key.kind for key in written} >= {"deployment", "replica", "tenant", "api_key", "alias"}
    for key in written:
        before = found.documents[key].document
        after = _as_told(before, json.loads(json.dumps(written[key])))
        assert before == after | {name: before[name] for name in LEFT_OUT if name in before}


def _as_told(before: Any, after: Any) -> Any:
    """What was written, without fields that the base had no name for."""
    match before:
        case Mapping():
            return {name: _as_told(each, after.get(name)) for name, each in before.items()}
        case list() if isinstance(after, list):
            return [_as_told(one, other) for one, other in zip(before, after, strict=True)]
    return after


async def contents_of_copy(path: Path) -> dict[Key, Document]:
    copy = path.with_name("copy.db")
    sqlite_formats.copied(path, copy, lambda _: None)
    return await contents(copy)


async def test_a_new_store_is_of_today_s_format(tmp_path: Path) -> None:
    path = tmp_path / "penstock.db"
    await (await SqliteStore.open(path)).close()
    assert looked_at(path) == (sqlite_formats.READABLE, sqlite_formats.FORMAT)
    assert [each.name for each in tmp_path.iterdir()] == ["penstock.db"]


async def test_where_no_copy_can_be_made_nothing_is_changed(path: Path) -> None:
    path.with_name("penstock.db.format-4.tmp").mkdir()
    with pytest.raises(CannotStart, match="cannot be copied"):
        await SqliteStore.open(path)
    assert looked_at(path) == (4, 4)


async def refused(path: Path, statement: str) -> str:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(statement)
    with pytest.raises(CannotStart) as error:
        await SqliteStore.open(path)
    return str(error.value)


async def test_a_newer_store_is_refused_with_the_version_that_wrote_it(path: Path) -> None:
    await contents(path)
    newer = "PRAGMA user_version = 9; INSERT INTO formats VALUES (9, '3.2.1')"
    said = await refused(path, newer)
    assert f"has format 9, this version reads up to {sqlite_formats.FORMAT}" in said
    assert "start Penstock 3.2.1, which wrote it, or a later one" in said


async def test_what_a_newer_version_only_added_to_is_read(path: Path) -> None:
    found = await contents(path)
    with closing(sqlite3.connect(path)) as db:
        db.executescript("CREATE TABLE more (x); INSERT INTO formats VALUES (6, '3.2.1')")
    assert await contents(path) == found


async def test_a_store_that_is_older_than_the_base_is_refused_with_what_reads_it(
    path: Path,
) -> None:
    said = await refused(path, "PRAGMA user_version = 3")
    assert "has format 3: start the Penstock of commit 9f5754f once with it" in said


async def test_a_document_that_the_base_would_have_changed_is_told(path: Path) -> None:
    bound = """INSERT INTO documents VALUES ('deployment', 'b', 1, '{"bindings": [{}]}')"""
    assert "has deployment b as an older version" in await refused(path, bound)
    with closing(sqlite3.connect(path)) as db:
        db.executescript("DELETE FROM documents WHERE name = 'b'")
    before_fallbacks = (
        """INSERT INTO documents VALUES ('tenant', 'old', 1, '{"degrade": "allow"}')"""
    )
    said = await refused(path, before_fallbacks)
    assert "has tenant old as an older version left it: start the Penstock of commit" in said
    assert looked_at(path) == (4, 4)


async def test_what_is_written_afterwards_is_kept(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.apply([Change(Key("thing", "new"), {})], Author("me", "try"), NOON)
    await store.close()
    assert Key("thing", "new") in await contents(path)
