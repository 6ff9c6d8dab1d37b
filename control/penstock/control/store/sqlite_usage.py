"""Usage in the tables of the embedded store. Every function runs in the store's thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import date

from penstock.control.state.tenancy.spend import Spend, SpendRow
from penstock.control.state.tenancy.usage import (
    REMEMBERED,
    Counts,
    Holder,
    Reading,
    UsageKey,
    UsageRow,
    growth,
    highest,
)

TABLES = """
CREATE TABLE usage (
    day TEXT NOT NULL, tenant TEXT NOT NULL, key_id TEXT NOT NULL, deployment TEXT NOT NULL,
    adapter TEXT NOT NULL, requests INTEGER NOT NULL, rejected INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL, cost_nanousd INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, tenant, key_id, deployment, adapter)
) WITHOUT ROWID;
CREATE TABLE usage_seen (
    instance TEXT NOT NULL, tenant TEXT NOT NULL, key_id TEXT NOT NULL, deployment TEXT NOT NULL,
    adapter TEXT NOT NULL, requests INTEGER NOT NULL, rejected INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL, heard TEXT NOT NULL, cost_nanousd INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (instance, tenant, key_id, deployment, adapter)
) WITHOUT ROWID;
"""
_COUNTS = ", ".join(Counts._fields)
_ADDED = ", ".join(f"{name} = {name} + excluded.{name}" for name in Counts._fields)
_SEEN = (
    f"SELECT {_COUNTS}, heard FROM usage_seen "
    "WHERE instance = ? AND tenant = ? AND key_id = ? AND deployment = ? AND adapter = ?"
)
_SEE = (
    f"INSERT OR REPLACE INTO usage_seen (instance, tenant, key_id, deployment, adapter, {_COUNTS},"
    " heard) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_ADD = (
    f"INSERT INTO usage (day, tenant, key_id, deployment, adapter, {_COUNTS}) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
    f"ON CONFLICT (day, tenant, key_id, deployment, adapter) DO UPDATE SET {_ADDED}"
)
_READ = (
    f"SELECT day, tenant, key_id, deployment, adapter, {_COUNTS} FROM usage "
    "WHERE day BETWEEN ? AND ? AND (? IS NULL OR tenant = ?) "
    "ORDER BY day, tenant, key_id, deployment, adapter"
)
_SUMS = (
    f"SELECT tenant, key_id, {', '.join(f'sum({name})' for name in Counts._fields)} FROM usage "
    "WHERE day = ? GROUP BY tenant, key_id"
)
_SPENT = (
    "SELECT day, deployment, sum(requests), sum(prompt_tokens), sum(completion_tokens),"
    " sum(cost_nanousd) FROM usage WHERE day BETWEEN ? AND ? AND (? IS NULL OR deployment = ?) "
    "GROUP BY day, deployment ORDER BY day, deployment"
)


def record(db: sqlite3.Connection, readings: Sequence[Reading]) -> None:
    """Inside of a transaction: what was seen is written with what was added."""
    in_order = sorted(readings, key=lambda each: each.day)
    if any([_record_one(db, reading) for reading in in_order]):
        oldest = in_order[-1].day - REMEMBERED
        db.execute("DELETE FROM usage_seen WHERE heard < ?", (oldest.isoformat(),))


def _record_one(db: sqlite3.Connection, reading: Reading) -> bool:
    """Whether it was last heard on an earlier day: time to look for what is forgotten."""
    name = (reading.instance, *reading.of)
    row = db.execute(_SEEN, name).fetchone()
    before, observed = (Counts(*row[:-1]), row[-1]) if row else (Counts(), "")
    grown = growth(before, reading.counts)
    day = reading.day.isoformat()
    if any(grown):
        db.execute(_ADD, (day, *reading.of, *grown))
    if any(grown) or observed < day:
        db.execute(_SEE, (*name, *highest(before, reading.counts), max(observed, day)))
    return "" < observed < day


def usage(db: sqlite3.Connection, first: date, last: date, tenant: str | None) -> list[UsageRow]:
    """Rows of these days."""
    rows = db.execute(_READ, (first.isoformat(), last.isoformat(), tenant, tenant))
    return [
        UsageRow(date.fromisoformat(day), UsageKey(*of), Counts(*counts))
        for day, of, counts in ((row[0], row[1:5], row[5:]) for row in rows)
    ]


def spent(
    db: sqlite3.Connection, first: date, last: date, deployment: str | None
) -> list[SpendRow]:
    """What deployments had on these days."""
    rows = db.execute(_SPENT, (first.isoformat(), last.isoformat(), deployment, deployment))
    return [SpendRow(date.fromisoformat(day), name, Spend(*counts)) for day, name, *counts in rows]


def sums_of(db: sqlite3.Connection, day: date) -> dict[Holder, Counts]:
    """By tenant and key."""
    rows = db.execute(_SUMS, (day.isoformat(),))
    return {Holder(tenant, key): Counts(*counts) for tenant, key, *counts in rows}
