"""Which sessions were counted, as hashes in a table of the ledger's file.

One is counted once. After as long as texts are kept it is forgotten, so that a shadow that never
ends has no file that only grows: a session that goes on after that is counted as a new one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

TABLE: Final = """
CREATE TABLE IF NOT EXISTS sessions (
    uid TEXT NOT NULL, session TEXT NOT NULL, day INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (uid, session)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS sessions_by_day ON sessions (day);
"""
_DAY: Final = timedelta(days=1)


class Sessions:
    """One owner, who has the transactions."""

    def __init__(self, db: sqlite3.Connection, longest: timedelta) -> None:
        """`longest`: how long one is known."""
        self._db = db
        self._longest = longest

    def known(self, uid: str, sessions: Iterable[str]) -> list[str]:
        """Those of them that were counted before."""
        find = "SELECT 1 FROM sessions WHERE uid = ? AND session = ?"
        return [each for each in sessions if self._db.execute(find, (uid, each)).fetchone()]

    def add(self, uid: str, sessions: Iterable[str], now: datetime) -> None:
        """They are counted."""
        rows = ((uid, each, _day(now)) for each in sessions)
        self._db.executemany("INSERT INTO sessions (uid, session, day) VALUES (?, ?, ?)", rows)

    def trim(self, ended: Collection[str], now: datetime) -> None:
        """Forgets those that are too old, and all of shadows that count no more."""
        self._db.executemany("DELETE FROM sessions WHERE uid = ?", ((uid,) for uid in ended))
        self._db.execute("DELETE FROM sessions WHERE day < ?", (_day(now - self._longest),))


def _day(moment: datetime) -> int:
    return int(moment.timestamp() // _DAY.total_seconds())
