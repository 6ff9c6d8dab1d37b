"""What was counted, in one SQLite file: each batch of a gateway once, all or nothing.

A shadow's evidence is a few floats, stored in the same transaction as the number of the batch that
it comes from. So a batch that is sent again, or a comparer that is killed, changes no verdict.
Numbers and hashes are kept, and prompts and answers where that was asked for: `records` has these,
in the same file and the same transactions. One thread at a time.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from penstock.control.comparer.answers import pair_of, session_of
from penstock.control.comparer.keeping import Keeping
from penstock.control.comparer.recorder import NotKept
from penstock.control.comparer.recordings import Recordings
from penstock.control.comparer.records import OF_A_UID, TABLES, Records
from penstock.control.comparer.sessions import TABLE, Sessions
from penstock.control.comparer.worst_pairs import kept_of
from penstock.control.errors import CannotStart, Code, NotFound
from penstock.control.state.recording.recorded import RecordingOrder
from penstock.control.state.shadow.comparing import Order
from penstock.control.state.shadow.spec import Record
from penstock.evals.comparison.pair import Pair
from penstock.evals.comparison.report import Report, report
from penstock.evals.comparison.rules import Rules, rules
from penstock.evals.comparison.tally import Tally
from penstock.v1 import shadow_pb2

log = logging.getLogger(__name__)

# One process has it at a time; what is deleted is overwritten.
_SETTINGS: Final = """
PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA secure_delete=ON;
"""
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS shadows (uid TEXT PRIMARY KEY, state TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS outcomes (
    uid TEXT NOT NULL, gateway TEXT NOT NULL, instance TEXT NOT NULL, outcome TEXT NOT NULL,
    count INTEGER NOT NULL, PRIMARY KEY (uid, gateway, instance, outcome)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (
    gateway TEXT NOT NULL, instance TEXT NOT NULL, number INTEGER NOT NULL,
    PRIMARY KEY (gateway, instance, number)
) WITHOUT ROWID;
"""
_OF_A_SHADOW: Final = ("shadows", "sessions", "outcomes", *OF_A_UID)
UNREADABLE: Final = "unreadable"
"""The outcome of a pair that no check could read."""
WINDOW: Final = 1000
"""Batches of an instance whose numbers are kept: older ones were counted."""


class Counted(NamedTuple):
    """A pair that is evidence, of a shadow that may ask others about it."""

    order: Order
    message: shadow_pb2.ShadowPair
    pair: Pair


class Ledger:
    """The file, opened."""

    def __init__(self, path: Path, keeping: Keeping | None = None) -> None:
        """Opens or makes it. `keeping`: how texts are kept. Raises `CannotStart`."""
        self._path = path
        self._keeping = keeping or Keeping()
        self._orders: dict[str, Order] = {}
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            self._db = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=0
            )
            self._db.executescript(_SETTINGS + _TABLES + TABLE + TABLES)
            bounds = self._keeping.bounds
            self._sessions = Sessions(self._db, bounds.longest)
            path.stat()  # the one before may have deleted it just now
        except (OSError, sqlite3.Error) as error:
            raise CannotStart(f"cannot open {path}: {error}: check its disk and rights") from error

        self._records = Records(self._db, self._keeping.vault, bounds)
        self.recordings = Recordings(self._records, self._keeping)

    def keep(
        self,
        orders: Iterable[Order],
        recordings: Iterable[RecordingOrder] = (),
        *,
        keep_others: bool,
    ) -> None:
        """These are the shadows and the recordings that there are; what is kept of others is
        deleted, unless those are to be kept. Texts that are too old go in any case."""
        self._orders = {each.uid: each for each in orders}
        self.recordings.keep(recordings)
        named = self._orders.keys() | self.recordings.uids
        known = {uid for (uid,) in self._db.execute("SELECT uid FROM shadows")}
        ended = [each.uid for each in self._orders.values() if each.ended]
        now = self._keeping.clock.now()
        with self._transaction():
            new = ((uid,) for uid in named - known)
            self._db.executemany("INSERT INTO shadows (uid) VALUES (?)", new)
            self._sessions.trim(ended, now)
            self.recordings.note_rules()
            trimmed = self._records.trim(now)
        if not keep_others and (gone := known - named):
            self._forget(gone)
        elif trimmed:
            self._overwrite()

    def take(self, batch: shadow_pb2.ShadowBatch) -> list[Counted]:
        """Counts a batch, unless it was counted; those of its pairs that others are to be asked
        about. It is on disk when this returns."""
        counted: list[Counted] = []
        self._keeping.recorder.begin()
        with self._transaction():
            if self._is_new(batch.gateway_id, batch.instance, batch.number):
                self._count_outcomes(batch)
                for uid in dict.fromkeys(pair.rule for pair in batch.pairs):
                    pairs = [each for each in batch.pairs if each.rule == uid]
                    counted += self._count_pairs(uid, pairs)
                self._records.trim(self._keeping.clock.now())
        return counted

    def add_later(self, uid: str, pair: Pair, checks: Collection[str]) -> None:
        """Counts what these checks say by now of a pair that is evidence."""
        if order := self._orders.get(uid):
            with self._transaction():
                tally = self._tally(order, ())
                tally.add_later(pair, checks)
                self._store(uid, tally)

    def add_outcomes(self, uid: str, outcomes: Mapping[str, int]) -> None:
        """Counts what became of pairs here."""
        if uid in self._orders and outcomes:
            with self._transaction():
                self._note(uid, outcomes)

    def tally(self, uid: str) -> Tally:
        """What was counted of a shadow, without its sessions. Raises `unknown-shadow`."""
        return self._tally(self._order(uid), ())

    def report(self, uid: str, *, with_texts: bool = False) -> Report:
        """What it comes to; `with_texts`: with the worst of the pairs that are kept. Raises
        `unknown-shadow`."""
        order = self._order(uid)
        found = report(self.tally(uid), order.primary, order.candidate)
        if not with_texts or order.record is Record.NONE:
            return found
        gates = [each.check.name for each in found.findings if each.check.gate]
        return replace(found, kept=kept_of(self._records, uid, gates))

    def outcomes(self, uid: str) -> dict[str, int]:
        """What became of the requests that were sampled, at all gateways."""
        rows = self._db.execute(
            "SELECT outcome, sum(count) FROM outcomes WHERE uid = ? GROUP BY outcome", (uid,)
        )
        return dict(rows.fetchall())

    def close(self) -> None:
        """Lets go of the file; one in which nothing is kept goes."""
        if not self._db.execute("SELECT count(*) FROM shadows").fetchone()[0]:
            self._db.execute("PRAGMA journal_mode=DELETE")  # no file beside it
            self._path.unlink(missing_ok=True)
        self._db.close()

    def _order(self, uid: str) -> Order:
        if found := self._orders.get(uid):
            return found
        raise NotFound(
            f"the comparer knows no shadow {uid!r}: ask again in a second", Code.UNKNOWN_SHADOW
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of it or nothing."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:  # a disk without room may have ended it
                self._db.execute("ROLLBACK")

    def _is_new(self, gateway: str, instance: str, number: int) -> bool:
        """Whether a batch was never counted; notes that it is now."""
        of = (gateway, instance)
        last = "SELECT coalesce(max(number), 0) FROM batches WHERE gateway = ? AND instance = ?"
        (highest,) = self._db.execute(last, of).fetchone()
        if number <= highest - WINDOW:
            return False
        insert = "INSERT OR IGNORE INTO batches VALUES (?, ?, ?)"
        if not self._db.execute(insert, (*of, number)).rowcount:
            return False
        # A gateway whose next instance speaks will not send anything of an earlier one again.
        forget = "DELETE FROM batches WHERE gateway = ? AND (instance != ? OR number <= ?)"
        self._db.execute(forget, (*of, max(highest, number) - WINDOW))
        return True

    def _count_outcomes(self, batch: shadow_pb2.ShadowBatch) -> None:
        self._db.executemany(
            "INSERT INTO outcomes VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET count = max(count, excluded.count)",
            (
                (each.rule, batch.gateway_id, batch.instance, each.outcome, each.count)
                for each in batch.counts
                if each.rule in self._orders or each.rule in self.recordings.uids
            ),
        )

    def _count_pairs(
        self, uid: str, messages: Sequence[shadow_pb2.ShadowPair]
    ) -> Iterator[Counted]:
        if uid in self.recordings.uids:
            return self.recordings.add(uid, messages)
        order = self._orders.get(uid)
        if order is None or order.ended:
            return None  # deleted meanwhile, or its sessions are forgotten
        known = self._sessions.known(uid, {session_of(each) for each in messages})
        tally = self._tally(order, known)
        for message in messages:
            pair = self._add(tally, message, order)
            if pair is not None and order.asks:
                yield Counted(order, message, pair)
        new = self._store(uid, tally) - set(known)
        self._sessions.add(uid, new, self._keeping.clock.now())
        return None

    def _store(self, uid: str, tally: Tally) -> set[str]:
        """Its sessions lie elsewhere: those that it knows."""
        state = tally.as_dict()
        sessions = set(state.pop("sessions"))
        self._db.execute("UPDATE shadows SET state = ? WHERE uid = ?", (json.dumps(state), uid))
        return sessions

    def _add(self, tally: Tally, message: shadow_pb2.ShadowPair, order: Order) -> Pair | None:
        """The pair, where it is evidence. Models and clients may write anything: what breaks a
        check is told of and left out, or its gateway would send it again for ever."""
        try:
            pair = pair_of(message)
            differences = tally.add(pair)
        except Exception:
            log.exception("a pair cannot be read", extra={"request_id": message.request_id})
            self._note(message.rule, {UNREADABLE: 1})
            return None
        if differences is None:
            return None
        if order.record is not Record.NONE:
            gates = {each.name for each in tally.rules.gates}
            worse = {name: by for name, by in differences.items() if name in gates}
            self._record(message, pair, order, worse)
        return pair

    def _record(
        self,
        message: shadow_pb2.ShadowPair,
        pair: Pair,
        order: Order,
        worse: Mapping[str, float],
    ) -> None:
        try:
            text = self._keeping.text_of(
                lambda recorder: recorder.pair(message, pair, order.record)
            )
        except NotKept as why:
            self._records.leave_out(order.uid, str(why))
        else:
            self._records.add(order.uid, text, worse, self._keeping.clock.now())

    def _note(self, uid: str, outcomes: Mapping[str, int]) -> None:
        self._db.executemany(
            "INSERT INTO outcomes VALUES (?, '', '', ?, ?)"
            " ON CONFLICT DO UPDATE SET count = count + excluded.count",
            ((uid, outcome, count) for outcome, count in outcomes.items()),
        )

    def _tally(self, order: Order, sessions: Collection[str]) -> Tally:
        """What was counted, knowing that these sessions were."""
        row = self._db.execute("SELECT state FROM shadows WHERE uid = ?", (order.uid,)).fetchone()
        fresh = Tally(_rules(order)).as_dict()
        state = json.loads(row[0]) if row and row[0] else fresh
        try:
            return Tally.of(_rules(order), {**state, "sessions": sessions})
        except (ValueError, LookupError):
            log.warning(
                "counted by the checks of another version: begun anew", extra={"uid": order.uid}
            )
            return Tally.of(_rules(order), {**fresh, "sessions": sessions})

    def _forget(self, uids: Collection[str]) -> None:
        with self._transaction():
            for table in _OF_A_SHADOW:
                self._db.executemany(f"DELETE FROM {table} WHERE uid = ?", ((u,) for u in uids))
        self._overwrite()

    def _overwrite(self) -> None:
        """Leaves nothing in the file beside it, either."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _rules(order: Order) -> Rules:
    return rules(
        dict(order.margins),
        order.checks or None,
        guarded=dict(order.guardrails),
        now=time.monotonic,
        judge=bool(order.judge),
    )
