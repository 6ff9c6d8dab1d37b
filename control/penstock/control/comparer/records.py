"""Prompts and answers that are kept, in tables of the ledger's file; and how long.

The oldest of all go first, by age and by how much there is. Changes are made within the ledger's
transactions; which texts are whose is known by the shadow's or the recording's uid.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from penstock.control.comparer.vault import PLAIN, Vault

TABLES: Final = """
CREATE TABLE IF NOT EXISTS records (
    number INTEGER PRIMARY KEY, uid TEXT NOT NULL, kept_at REAL NOT NULL, key_id TEXT NOT NULL,
    bytes INTEGER NOT NULL, text BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS records_by_uid ON records (uid, number, key_id);
CREATE INDEX IF NOT EXISTS records_by_age ON records (kept_at);
CREATE TABLE IF NOT EXISTS worse (
    uid TEXT NOT NULL, gate TEXT NOT NULL, difference REAL NOT NULL, number INTEGER NOT NULL,
    PRIMARY KEY (uid, gate, difference, number)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS worse_by_number ON worse (number);
CREATE TABLE IF NOT EXISTS held (
    uid TEXT PRIMARY KEY, ever INTEGER NOT NULL DEFAULT 0, ever_bytes INTEGER NOT NULL DEFAULT 0,
    kept INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS unkept (
    uid TEXT NOT NULL, why TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (uid, why)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS redacted (
    uid TEXT NOT NULL, rule TEXT NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (uid, rule)
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS record_comes AFTER INSERT ON records BEGIN
    INSERT OR IGNORE INTO held (uid) VALUES (new.uid);
    UPDATE held SET ever = ever + 1, ever_bytes = ever_bytes + new.bytes,
        kept = kept + 1, bytes = bytes + new.bytes WHERE uid = new.uid;
END;
CREATE TRIGGER IF NOT EXISTS record_goes AFTER DELETE ON records BEGIN
    UPDATE held SET kept = kept - 1, bytes = bytes - old.bytes WHERE uid = old.uid;
    DELETE FROM worse WHERE number = old.number;
END;
"""
OF_A_UID: Final = ("records", "worse", "held", "unkept", "redacted")
A_PART: Final = 1 << 20
"""Bytes of texts that are read at a time, and the last one's."""
_LOOK: Final = 100
"""Records that are looked at together."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long texts are kept, of all shadows and recordings together."""

    longest: timedelta = timedelta(days=30)
    most_bytes: int = 1 << 30


class Ever(NamedTuple):
    """What there has been of one shadow or recording."""

    ever: int = 0  # records
    ever_bytes: int = 0
    kept: int = 0  # records that have not gone


class Held(NamedTuple):
    """The same, and what cannot be read."""

    ever: int
    ever_bytes: int
    kept: int
    unreadable: int  # of these, under a key that is not there


class Part(NamedTuple):
    """Texts of one, in the order in which they came."""

    texts: Sequence[bytes]
    last: int  # number of the last that was looked at


class Records:
    """One owner, who has the transactions."""

    def __init__(self, db: sqlite3.Connection, vault: Vault, bounds: Bounds) -> None:
        self._db = db
        self.vault = vault
        self._bounds = bounds

    def add(self, uid: str, text: bytes, worse: Mapping[str, float], now: datetime) -> None:
        """Keeps one. `worse`: by how much its candidate was, by gate."""
        sealed = self.vault.seal(text, uid)
        row = (uid, now.timestamp(), self.vault.key_id, len(sealed), sealed)
        insert = "INSERT INTO records (uid, kept_at, key_id, bytes, text) VALUES (?, ?, ?, ?, ?)"
        number = self._db.execute(insert, row).lastrowid
        self._db.executemany(
            "INSERT INTO worse VALUES (?, ?, ?, ?)",
            ((uid, gate, by, number) for gate, by in worse.items() if by > 0),
        )

    def leave_out(self, uid: str, why: str) -> None:
        """Counts one that is not kept."""
        self._db.execute(
            "INSERT INTO unkept VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1",
            (uid, why),
        )

    def trim(self, now: datetime) -> bool:
        """Lets go of what is too old, and of the oldest where there is too much. Whether any
        was."""
        limit = (now - self._bounds.longest).timestamp()
        gone = self._db.execute("DELETE FROM records WHERE kept_at < ?", (limit,)).rowcount
        while (over := self._bytes() - self._bounds.most_bytes) > 0:
            gone += self._drop(over)
        return gone > 0

    def _bytes(self) -> int:
        return int(self._db.execute("SELECT coalesce(sum(bytes), 0) FROM held").fetchone()[0])

    def _drop(self, over: int) -> int:
        """The oldest, until so many bytes have gone, or as many as are looked at."""
        last = 0
        oldest = "SELECT number, bytes FROM records ORDER BY number LIMIT ?"
        for number, size in self._db.execute(oldest, (_LOOK,)).fetchall():
            last, over = number, over - size
            if over <= 0:
                break
        return self._db.execute("DELETE FROM records WHERE number <= ?", (last,)).rowcount

    def ever(self, uid: str) -> Ever:
        """How much there has been of one."""
        find = "SELECT ever, ever_bytes, kept FROM held WHERE uid = ?"
        row = self._db.execute(find, (uid,)).fetchone()
        return Ever(*row) if row else Ever()

    def held(self, uid: str) -> Held:
        """How much there is of one."""
        other = "SELECT count(*) FROM records WHERE uid = ? AND key_id NOT IN (?, ?)"
        (unreadable,) = self._db.execute(other, (uid, PLAIN, self.vault.key_id)).fetchone()
        return Held(*self.ever(uid), unreadable)

    def redacted(self, uid: str) -> tuple[str, ...]:
        """The rules that all of its texts were held to."""
        find = "SELECT rule FROM redacted WHERE uid = ? ORDER BY place"
        return tuple(rule for (rule,) in self._db.execute(find, (uid,)))

    def narrow(self, uid: str, names: Sequence[str]) -> None:
        """From now on its texts are held to these rules: those that earlier ones were not held to
        are not to be told of all."""
        known = self.redacted(uid)
        if gone := set(known) - set(names):
            drop = "DELETE FROM redacted WHERE uid = ? AND rule = ?"
            self._db.executemany(drop, ((uid, each) for each in gone))
        if not known and not self.ever(uid).ever:
            insert = "INSERT INTO redacted VALUES (?, ?, ?)"
            self._db.executemany(insert, ((uid, name, n) for n, name in enumerate(names)))

    def left_out(self, uid: str) -> dict[str, int]:
        """What was not kept of one, by why."""
        find = "SELECT why, count FROM unkept WHERE uid = ? ORDER BY why"
        return dict(self._db.execute(find, (uid,)).fetchall())

    def worst(self, uid: str, gate: str, most: int) -> Iterator[tuple[float, bytes]]:
        """Those in which its candidate was worse by most, with by how much. What cannot be read is
        passed over."""
        rows = self._db.execute(
            "SELECT difference, key_id, text FROM worse JOIN records USING (number)"
            " WHERE worse.uid = ? AND gate = ? AND key_id IN (?, ?)"
            " ORDER BY difference DESC, number LIMIT ?",
            (uid, gate, PLAIN, self.vault.key_id, most),
        )
        for difference, key_id, sealed in rows.fetchall():
            if (text := self.vault.open(sealed, key_id, uid)) is not None:
                yield difference, text

    def part(self, uid: str, after: int) -> Part | None:
        """The texts behind this number, some of them; None: there are no more."""
        find = "SELECT number, key_id, text FROM records WHERE uid = ? AND number > ?"
        rows = self._db.execute(f"{find} ORDER BY number LIMIT ?", (uid, after, _LOOK))
        texts, size = list[bytes](), 0
        for number, key_id, sealed in rows:
            after, size = number, size + len(sealed)
            if (text := self.vault.open(sealed, key_id, uid)) is not None:
                texts.append(text)
            if size >= A_PART:
                break
        rows.close()
        return Part(texts, after) if size else None
