"""The embedded store: one SQLite file, written ahead, in a thread of its own.

A transaction that `apply` returned from survives kill -9 of the process and the loss of power:
others are told its version as the cluster's newest. SQLite's own write-ahead log does that, synced
at each transaction; the file lies beside a `-wal` and a `-shm` file while it is open.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from pathlib import Path
from typing import TypeVar

from penstock.control.errors import CannotStart, Code, PenstockError, StoreUnavailable
from penstock.control.state.events import Event, EventPage, Wanted
from penstock.control.state.tenancy.spend import SpendRow
from penstock.control.state.tenancy.usage import Counts, Holder, Reading, UsageRow
from penstock.control.store import sqlite_events, sqlite_formats, sqlite_usage
from penstock.control.store.store import (
    UNAUDITED,
    AuditEntry,
    Author,
    Change,
    Contents,
    Document,
    Key,
    Stored,
)
from penstock.control.store.timed_writes import TimedWrites

_T = TypeVar("_T")

_SCHEMA = """
CREATE TABLE documents (
    kind TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, document TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
CREATE TABLE transactions (
    version INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, who TEXT NOT NULL,
    what TEXT NOT NULL
);
CREATE TABLE audit (
    version INTEGER NOT NULL REFERENCES transactions, kind TEXT NOT NULL, name TEXT NOT NULL,
    before TEXT, after TEXT
);
CREATE INDEX audit_version ON audit (version);
"""
# The trail keeps this many transactions; a replica's every step is one.
AUDIT_KEPT = 100_000
LAST_VERSION = 2**63 - 1


class SqliteStore:
    """A Store in one file. Use `open`; every method runs in the store's own thread."""

    def __init__(self, path: Path, executor: ThreadPoolExecutor, db: sqlite3.Connection) -> None:
        self._path = path
        self._executor = executor
        self._db = db
        self._closed = False
        self._writes: TimedWrites | None = None

    @classmethod
    async def open(cls, path: Path, *, existed: bool = False) -> SqliteStore:
        """Opens or makes the file; where a store `existed`, an empty file is none. Raises
        `store-corrupted` or CannotStart, naming it."""
        executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        try:
            db = await asyncio.get_running_loop().run_in_executor(executor, _open, path, existed)
        except BaseException:
            executor.shutdown(wait=False)
            raise
        return cls(path, executor, db)

    def observe(self, writes: TimedWrites) -> None:
        """Who times what is written from now on."""
        self._writes = writes

    async def load(self) -> Contents:
        """Everything, read in one transaction."""
        return await self._run(lambda: _load(self._db))

    async def apply(self, changes: Sequence[Change], author: Author, at: datetime) -> int:
        """Writes all changes or none; returns the new version."""
        return await self._write(lambda: _apply(self._db, changes, author, at))

    async def audit(
        self, limit: int, *, before: int | None = None, without: str = ""
    ) -> list[AuditEntry]:
        """The latest entries, newest first; of versions below `before` alone, and none of the
        author `without`."""
        return await self._run(lambda: _audit(self._db, limit, before, without))

    async def record(self, readings: Sequence[Reading]) -> None:
        """Adds what counts have grown by, all or nothing."""
        await self._write(lambda: _record(self._db, readings))

    async def usage(self, first: date, last: date, tenant: str | None = None) -> list[UsageRow]:
        """Rows from one day to another, both included; of one tenant, or all."""
        return await self._run(lambda: sqlite_usage.usage(self._db, first, last, tenant))

    async def spent(self, first: date, last: date, deployment: str | None = None) -> list[SpendRow]:
        """What deployments had on each of these days; one of them, or all."""
        return await self._run(lambda: sqlite_usage.spent(self._db, first, last, deployment))

    async def sums_of(self, day: date) -> Mapping[Holder, Counts]:
        """What each key of each tenant had on a day."""
        return await self._run(lambda: sqlite_usage.sums_of(self._db, day))

    async def keep_events(self, events: Sequence[Event]) -> None:
        """Adds them, all or nothing."""
        await self._write(lambda: _keep(self._db, events))

    async def events(
        self, wanted: Wanted, *, after: int = 0, most: int | None = None, last: bool = False
    ) -> EventPage:
        """Those behind an id: the oldest of them, or the `last`."""
        return await self._run(
            lambda: sqlite_events.events(self._db, wanted, after, most, last=last)
        )

    async def close(self) -> None:
        """Writes the log back into the file and closes it; what is asked later is refused."""
        self._closed = True
        await self._in_thread(self._db.close)
        self._executor.shutdown()

    async def _write(self, work: Callable[[], _T]) -> _T:
        writing = self._run(work)
        return await (self._writes.timed(writing) if self._writes else writing)

    async def _run(self, work: Callable[[], _T]) -> _T:
        if self._closed:
            raise StoreUnavailable(f"the store {self._path} is closed, its head stops: ask again")
        return await self._in_thread(work)

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._executor, work)
        except sqlite3.Error as error:
            raise StoreUnavailable(
                f"the store {self._path} failed: {error}: check the disk's space and rights"
            ) from error


def _open(path: Path, existed: bool) -> sqlite3.Connection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(path, isolation_level=None, timeout=5.0)
    except (OSError, sqlite3.OperationalError) as error:
        raise CannotStart(f"cannot open the store {path}: {error}: check its rights") from error
    try:
        _prepare(db, path, existed)
    except sqlite3.OperationalError as error:  # the disk's fault, not the file's
        db.close()
        raise CannotStart(
            f"cannot open the store {path}: {error}: check its disk's space and rights"
        ) from error
    except sqlite3.DatabaseError as error:
        db.close()
        raise _corrupted(path, str(error)) from error
    except PenstockError:
        db.close()
        raise
    return db


def _prepare(db: sqlite3.Connection, path: Path, existed: bool) -> None:
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    found = [row[0] for row in db.execute("PRAGMA quick_check")]
    if found != ["ok"]:
        raise _corrupted(path, "; ".join(found[:3]))
    if sqlite_formats.found(db) == 0:
        if existed:
            raise _corrupted(path, "it is empty, and a head has worked with it")
        sqlite_formats.make(db, _SCHEMA + sqlite_usage.TABLES)
    elif refused := sqlite_formats.refusal(db):
        raise CannotStart(f"the store {path} {refused}; or name another data directory")
    sqlite_formats.bring(db, path)


def _corrupted(path: Path, detail: str) -> CannotStart:
    return CannotStart(
        f"the store {path} is damaged ({detail}): put its directory away and "
        "make another from a backup by `penstock restore`; nodes and gateways go on as they are "
        "meanwhile",
        Code.STORE_CORRUPTED,
    )


def _load(db: sqlite3.Connection) -> Contents:
    with _transaction(db, "BEGIN"):
        rows = db.execute("SELECT kind, name, version, document FROM documents").fetchall()
        (version,) = db.execute("SELECT coalesce(max(version), 0) FROM transactions").fetchone()
    documents = {Key(k, n): Stored(_parsed(text), v) for k, n, v, text in rows}
    return Contents(version, documents)


def _parsed(text: str) -> Document:
    """A document; what is none stands under a name that nobody reads, and is kept as it is."""
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    return document if isinstance(document, dict) else {"unreadable": text}


def _apply(db: sqlite3.Connection, changes: Iterable[Change], author: Author, at: datetime) -> int:
    with _transaction(db, "BEGIN IMMEDIATE"):
        cursor = db.execute(
            "INSERT INTO transactions (at, who, what) VALUES (?, ?, ?)",
            (at.isoformat(), author.who, author.what),
        )
        version = cursor.lastrowid or 0
        for change in changes:
            _apply_one(db, change, version)
        db.execute("DELETE FROM audit WHERE version <= ?", (version - AUDIT_KEPT,))
        db.execute("DELETE FROM transactions WHERE version <= ?", (version - AUDIT_KEPT,))
    return version


def _apply_one(db: sqlite3.Connection, change: Change, version: int) -> None:
    key = change.key
    row = db.execute(
        "SELECT version, document FROM documents WHERE kind = ? AND name = ?", key
    ).fetchone()
    found, before = row or (0, None)
    if change.expected_version is not None and change.expected_version != found:
        raise PenstockError(
            f"{key.kind} {key.name!r} is at version {found}, not {change.expected_version}: "
            "read it again, then repeat the change",
            Code.REVISION_MISMATCH,
        )
    after = None if change.document is None else json.dumps(change.document, sort_keys=True)
    if after is None:
        db.execute("DELETE FROM documents WHERE kind = ? AND name = ?", key)
    else:
        db.execute("INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?)", (*key, version, after))
    if key.kind not in UNAUDITED:
        db.execute("INSERT INTO audit VALUES (?, ?, ?, ?, ?)", (version, *key, before, after))


def _audit(
    db: sqlite3.Connection, limit: int, before: int | None, without: str
) -> list[AuditEntry]:
    rows = db.execute(
        "SELECT version, at, who, what, kind, name, before, after FROM audit "
        "JOIN transactions USING (version) WHERE version < ? AND who != ? "
        "ORDER BY version DESC, audit.rowid DESC LIMIT ?",
        (LAST_VERSION if before is None else min(before, LAST_VERSION), without, limit),
    ).fetchall()
    return [
        AuditEntry(
            version=version,
            at=datetime.fromisoformat(at),
            who=who,
            what=what,
            key=Key(kind, name),
            before=before and json.loads(before),
            after=after and json.loads(after),
        )
        for version, at, who, what, kind, name, before, after in rows
    ]


def _record(db: sqlite3.Connection, readings: Sequence[Reading]) -> None:
    with _transaction(db, "BEGIN IMMEDIATE"):
        sqlite_usage.record(db, readings)


def _keep(db: sqlite3.Connection, events: Sequence[Event]) -> None:
    with _transaction(db, "BEGIN IMMEDIATE"):
        sqlite_events.keep(db, events)


class _transaction:
    """BEGIN to COMMIT, or ROLLBACK where the body raised, or the commit itself."""

    def __init__(self, db: sqlite3.Connection, begin: str) -> None:
        self._db = db
        self._begin = begin

    def __enter__(self) -> None:
        self._db.execute(self._begin)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:  # SQLite has rolled back by itself where there was no room
                self._db.execute("ROLLBACK")
