"""What every Store promises, on every implementation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from penstock.control.errors import RevisionMismatch
from penstock.control.store.sqlite import SqliteStore
from penstock.control.store.store import Author, Change, Key, Store
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import NOON, SECOND

A, B = Key("deployment", "a"), Key("deployment", "b")
ADMIN = Author("admin", "test")


@pytest.fixture(params=["sqlite", "memory"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    open_store: dict[str, Callable[[], Awaitable[Store]]] = {
        "sqlite": lambda: SqliteStore.open(tmp_path / "penstock.db"),
        "memory": lambda: asyncio.sleep(0, MemoryStore()),
    }
    opened = await open_store[request.param]()
    yield opened
    await opened.close()


async def test_an_empty_store_is_at_version_0(store: Store) -> None:
    contents = await store.load()
    assert (contents.version, contents.documents) == (0, {})


async def test_what_was_written_is_read_back_with_its_version(store: Store) -> None:
    assert await store.apply([Change(A, {"x": 1, "text": "ü"})], ADMIN, NOON) == 1
    assert await store.apply([Change(B, {"y": [1, None]})], ADMIN, NOON) == 2
    contents = await store.load()
    assert contents.version == 2
    assert {k: (s.version, s.document) for k, s in contents.documents.items()} == {
        A: (1, {"x": 1, "text": "ü"}),
        B: (2, {"y": [1, None]}),
    }


async def test_a_deleted_document_is_gone(store: Store) -> None:
    await store.apply([Change(A, {})], ADMIN, NOON)
    await store.apply([Change(A, None)], ADMIN, NOON)
    assert (await store.load()).documents == {}


async def test_a_writer_that_read_an_older_version_is_refused(store: Store) -> None:
    await store.apply([Change(A, {"n": 1})], ADMIN, NOON)
    await store.apply([Change(A, {"n": 2}, expected_version=1)], ADMIN, NOON)
    with pytest.raises(RevisionMismatch, match="at version 2"):
        await store.apply([Change(A, {"n": 3}, expected_version=1)], ADMIN, NOON)
    with pytest.raises(RevisionMismatch):
        await store.apply([Change(A, {"n": 3}, expected_version=0)], ADMIN, NOON)
    assert (await store.load()).documents[A].document == {"n": 2}


async def test_a_transaction_is_all_or_nothing(store: Store) -> None:
    changes = [Change(A, {}), Change(B, {}, expected_version=7)]
    with pytest.raises(RevisionMismatch):
        await store.apply(changes, ADMIN, NOON)
    contents = await store.load()
    assert (contents.version, contents.documents) == (0, {})
    assert await store.audit(10) == []


async def test_older_audit_entries_are_asked_for_by_version(store: Store) -> None:
    for name in ("a", "b", "c"):
        await store.apply([Change(Key("x", name), {})], Author("me", name), NOON)
    newest, *_ = await store.audit(1)
    older = await store.audit(10, before=newest.version)
    assert [entry.what for entry in older] == ["b", "a"]
    assert await store.audit(10, before=0) == []
    assert len(await store.audit(10, before=2**64)) == 3


async def test_the_audit_trail_says_who_what_when_before_and_after(store: Store) -> None:
    await store.apply([Change(A, {"n": 1})], Author("admin", "create a"), NOON)
    await store.apply([Change(A, {"n": 2})], Author("head", "change a"), NOON + SECOND)
    await store.apply([Change(A, None)], Author("admin", "delete a"), NOON + SECOND)
    trail = await store.audit(2)
    assert [(e.who, e.what, e.at, e.key, e.before, e.after, e.version) for e in trail] == [
        ("admin", "delete a", NOON + SECOND, A, {"n": 2}, None, 3),
        ("head", "change a", NOON + SECOND, A, {"n": 1}, {"n": 2}, 2),
    ]


async def test_concurrent_writers_each_get_a_version_of_their_own(store: Store) -> None:
    writes = [store.apply([Change(A, {"n": n})], ADMIN, NOON) for n in range(20)]
    assert sorted(await asyncio.gather(*writes)) == list(range(1, 21))
