"""Recordings: requests as they came, kept as the lines of a file that can be sent once more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from penstock.control.comparer.keeping import Keeping
from penstock.control.comparer.recorder import NotKept
from penstock.control.comparer.records import Part, Records
from penstock.control.errors import Code, NotFound
from penstock.control.state.recording.recorded import RecordingOrder, RecordingStanding
from penstock.control.state.shadow.spec import Record
from penstock.evals.comparison.recording import Header, header_line
from penstock.v1 import shadow_pb2

OVER = "over"  # why a request is not kept: the recording has as many as it may, or was stopped


class Recordings:
    """Those that there are. The ledger has the transactions."""

    def __init__(self, records: Records, keeping: Keeping) -> None:
        self._records = records
        self._keeping = keeping
        self._orders: dict[str, RecordingOrder] = {}

    @property
    def uids(self) -> frozenset[str]:
        """Whose they are."""
        return frozenset(self._orders)

    def keep(self, orders: Iterable[RecordingOrder]) -> None:
        """These are the recordings that there are."""
        self._orders = {each.uid: each for each in orders}

    def note_rules(self) -> None:
        """What is recorded from now on is held to the rules that there are now."""
        for order in self._orders.values():
            if not order.ended and order.record is not Record.FULL:
                self._records.narrow(order.uid, self._keeping.held.names)

    def add(self, uid: str, messages: Sequence[shadow_pb2.ShadowPair]) -> None:
        """Keeps requests, until it has as many as it may."""
        order = self._orders[uid]
        for message in messages:
            try:
                text = self._text(order, message)
            except NotKept as why:
                self._records.leave_out(uid, str(why))
            else:
                self._records.add(uid, text, {}, self._keeping.clock.now())

    def _text(self, order: RecordingOrder, message: shadow_pb2.ShadowPair) -> bytes:
        held = self._records.ever(order.uid)
        full = held.ever >= order.most_requests or held.ever_bytes >= order.most_bytes
        if full or order.ended:
            raise NotKept(OVER)
        return self._keeping.text_of(
            lambda recorder: recorder.request(message, order.began_ms, order.record)
        )

    def standing(self, uid: str) -> RecordingStanding:
        """How one stands."""
        held = self._records.held(uid)
        left_out = self._records.left_out(uid)
        return RecordingStanding(
            uid, held.ever, held.ever_bytes, held.kept, held.unreadable, left_out
        )

    def head(self, uid: str) -> bytes:
        """The first line of the file. Raises `unknown-recording`."""
        order = self._orders.get(uid)
        if order is None:
            raise NotFound(
                f"the comparer knows no recording {uid!r}: ask again in a second",
                Code.UNKNOWN_RECORDING,
            )
        began = datetime.fromtimestamp(order.began_ms / 1000, UTC)
        return header_line(Header(began, self._records.redacted(uid)))

    def part(self, uid: str, after: int) -> Part | None:
        """Lines of it behind this number; None: there are no more."""
        return self._records.part(uid, after)
