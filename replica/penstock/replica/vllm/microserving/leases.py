"""Which leases there are, until when, and what workers have said of each. Pure: times come in from
outside, and what is to be done goes out.

    open --(End of all ranks, commit, release, time)--> closing --(all ranks have stopped)--> closed

Bytes that arrive put off an open lease's end, as asking for it again does; but none is older than
`LONGEST` since it was last asked for. A closed one that is not used ends by its time too. Until
all ranks have said that they have stopped, its blocks stay pinned: for `QUARANTINE` at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from penstock.replica.microserving.leases import LONGEST_TTL

LONGEST: Final = 120.0
STOPS_WITHIN: Final = 5.0
"""Seconds from the order to close to the answer to who waits for it."""

QUARANTINE: Final = 30.0
"""Seconds from the order to close after which blocks are given back whatever the ranks say."""

MOST: Final = 1024
"""Leases at once, however few their blocks are."""


class State(Enum):
    """Of a lease: see the module."""

    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"


@dataclass(slots=True, eq=False)
class Lease:
    """Blocks that are pinned for KV that comes. `holder`: whatever pins them; `told`: who asked for
    it, answered so. Tokens: `matched` were here before, `cached` are here now, up to `end`."""

    seq_id: str
    holder: Any
    told: Any
    blocks: int  # pinned
    matched: int
    end: int
    ttl: float
    asked: float  # when it was last asked for
    until: float
    state: State = State.OPEN
    cached: int = 0
    ending: bool = False  # to be given back once it is closed
    finished: set[int] = field(default_factory=set)  # ranks whose sender said that it is all
    stopped: dict[int, int] = field(default_factory=dict)  # ranks: whole blocks that they have
    waiting: list[Any] = field(default_factory=list)  # for it to be closed
    closing_since: float = 0.0
    told_at: float = 0.0  # the ranks, to stop


class Leases:
    """All of an engine. Used on one thread."""

    def __init__(self, most_blocks: int, ranks: int) -> None:
        self._most = most_blocks
        self._ranks = ranks
        self._held: dict[str, Lease] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Lease]:
        return iter(tuple(self._held.values()))

    @property
    def blocks(self) -> int:
        """That are leased."""
        return sum(lease.blocks for lease in self._held.values())

    def find(self, seq_id: str) -> Lease | None:
        """The lease of this name."""
        return self._held.get(seq_id)

    def has_room(self, blocks: int) -> bool:
        """Whether so many more may be leased."""
        return self.blocks + blocks <= self._most and len(self) < MOST

    def add(self, lease: Lease) -> None:
        """It begins."""
        self._held[lease.seq_id] = lease

    def remove(self, lease: Lease) -> bool:
        """It has ended; False: it had before."""
        if self._held.get(lease.seq_id) is not lease:
            return False
        del self._held[lease.seq_id]
        return True

    def renew(self, lease: Lease, now: float, ttl: float) -> None:
        """It is asked for again."""
        lease.ttl, lease.asked, lease.until = ttl, now, now + ttl

    def moved(self, lease: Lease, now: float) -> None:
        """Bytes of it have come."""
        lease.until = min(max(lease.until, now + lease.ttl), lease.asked + LONGEST)

    def claim(self, lease: Lease, now: float) -> None:
        """Its request waits to be scheduled. Not for ever: others that wait before it may need what
        such leases hold."""
        lease.until = now + LONGEST_TTL

    def finish(self, lease: Lease, rank: int) -> bool:
        """A rank has all of it; whether all have, and it is still open."""
        lease.finished.add(rank)
        return len(lease.finished) == self._ranks and lease.state is State.OPEN

    def close(self, lease: Lease, now: float) -> bool:
        """It is to take no more; whether the ranks have to be told."""
        if lease.state is not State.OPEN:
            return False
        lease.state, lease.closing_since, lease.told_at = State.CLOSING, now, now
        return True

    def stop(self, lease: Lease, rank: int, blocks: int) -> int | None:
        """A rank has stopped, with so many whole blocks; how many all have, once all have."""
        lease.stopped.setdefault(rank, blocks)
        if lease.state is not State.CLOSING or len(lease.stopped) < self._ranks:
            return None
        lease.state = State.CLOSED
        return min(lease.stopped.values())

    def due(self, now: float) -> tuple[list[Lease], list[Lease], list[Lease]]:
        """Those whose time is over; those whose ranks are to be told once more to stop, and for
        whom nobody should wait longer; those whose blocks are given back whatever the ranks say."""
        over = [one for one in self if _ends_by_time(one) and one.until <= now]
        closing = [one for one in self if one.state is State.CLOSING]
        late = [one for one in closing if now - one.told_at >= STOPS_WITHIN]
        for one in late:
            one.told_at = now
        lost = [one for one in closing if now - one.closing_since >= QUARANTINE]
        return over, late, lost

    def next_due(self) -> float | None:
        """When to look again; none: there is nothing to wait for."""
        times = [one.until for one in self if _ends_by_time(one)]
        for one in self:
            if one.state is State.CLOSING:
                times += [one.told_at + STOPS_WITHIN, one.closing_since + QUARANTINE]
        return min(times, default=None)


def _ends_by_time(lease: Lease) -> bool:
    return lease.state is not State.CLOSING and not lease.ending
