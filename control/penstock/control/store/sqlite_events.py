"""Events in the tables of the embedded store. Every function runs in the store's thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.control.state.events import (
    KEPT_FOR,
    MOST_KEPT,
    REPEATS_WITHIN,
    Event,
    EventPage,
    KeptEvent,
    Wanted,
)

TABLES = """
CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, name TEXT NOT NULL,
    deployment TEXT NOT NULL, reason TEXT NOT NULL, type TEXT NOT NULL, text TEXT NOT NULL,
    count INTEGER NOT NULL, first_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL
);
CREATE INDEX events_name ON events (kind, name, reason);
CREATE INDEX events_last ON events (last_ms);
CREATE TABLE events_forgotten (
    one INTEGER PRIMARY KEY CHECK (one = 1), up_to INTEGER NOT NULL
);
"""
_SAME = (
    "SELECT id, count, first_ms FROM events WHERE kind = ? AND name = ? AND reason = ?"
    " AND text = ? AND last_ms >= ? ORDER BY id DESC LIMIT 1"
)
_ADD = (
    "INSERT INTO events (kind, name, deployment, reason, type, text, count, first_ms, last_ms)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_OLD = "last_ms < ? OR id <= (SELECT id FROM events ORDER BY id DESC LIMIT 1 OFFSET ?)"
_FORGET = (
    "INSERT INTO events_forgotten VALUES (1, ?)"
    " ON CONFLICT (one) DO UPDATE SET up_to = max(up_to, excluded.up_to)"
)
_READ = "SELECT id, kind, name, reason, text, last_ms, deployment, count, first_ms FROM events"
_FORGOTTEN = "SELECT coalesce(max(up_to), 0) FROM events_forgotten"
_NEWEST = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'events'"
_MS = timedelta(milliseconds=1)
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


def keep(db: sqlite3.Connection, events: Iterable[Event]) -> None:
    """Inside of a transaction."""
    now = 0
    for event in events:
        now = max(now, _ms(event.at))
        _keep_one(db, event)
    old = (now - KEPT_FOR // _MS, MOST_KEPT)
    (up_to,) = db.execute(f"SELECT max(id) FROM events WHERE {_OLD}", old).fetchone()
    if up_to is not None:
        db.execute(f"DELETE FROM events WHERE {_OLD}", old)
        db.execute(_FORGET, (up_to,))


def _keep_one(db: sqlite3.Connection, event: Event) -> None:
    at, named = _ms(event.at), (event.kind, event.name, event.reason, event.text)
    found = db.execute(_SAME, (*named, at - REPEATS_WITHIN // _MS)).fetchone()
    before, count, first = found or (None, 0, at)
    if before is not None:
        db.execute("DELETE FROM events WHERE id = ?", (before,))
    what = (event.kind, event.name, event.deployment, event.reason, event.type, event.text)
    db.execute(_ADD, (*what, count + 1, first, at))


def events(
    db: sqlite3.Connection, wanted: Wanted, after: int, most: int | None, *, last: bool
) -> EventPage:
    """Those that are asked for, oldest first."""
    said: dict[str, str | int] = {f"{name} = ?": text for name, text in wanted.words.items()}
    said["id > ?"] = after
    if wanted.since is not None:
        said["last_ms >= ?"] = _ms(wanted.since)
    order = "DESC" if last else "ASC"
    asked = f"{_READ} WHERE {' AND '.join(said)} ORDER BY id {order} LIMIT ?"
    rows = db.execute(asked, (*said.values(), -1 if most is None else most)).fetchall()
    (forgotten,), (newest,) = db.execute(_FORGOTTEN).fetchone(), db.execute(_NEWEST).fetchone()
    return EventPage(tuple(map(_event, rows[::-1] if last else rows)), newest, forgotten)


def _event(row: tuple[Any, ...]) -> KeptEvent:
    id_, kind, name, reason, text, last, deployment, count, first = row
    event = Event(kind, name, reason, text, _at(last), deployment)
    return KeptEvent(id_, event, count, _at(first))


def _ms(moment: datetime) -> int:
    return (moment - _BEGIN) // _MS


def _at(ms: int) -> datetime:
    return _BEGIN + ms * _MS
