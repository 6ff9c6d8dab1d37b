"""The leases of an engine: who may write KV into which blocks, and until when.

Pure: callers pass `now`, in seconds of a clock that only goes on. What a lease has beside its name,
its size and its end is its engine's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from penstock.replica.microserving.values import MicroServingError

USUAL_TTL: Final = 10.0
SHORTEST_TTL: Final = 0.5
LONGEST_TTL: Final = 60.0
"""Seconds of a lease."""

MOST_LEASED: Final = 0.3
"""Share of an engine's blocks that may be leased."""

REMEMBERED: Final = 1024
"""Leases that have ended."""

_T = TypeVar("_T")


def bounded_ttl(ttl_ms: int) -> float:
    """Seconds of a lease for which so many milliseconds are asked; 0: nobody says."""
    return min(max(ttl_ms / 1000, SHORTEST_TTL), LONGEST_TTL) if ttl_ms else USUAL_TTL


class Ended:
    """What came by leases that have ended lately: it was not cached before the call that they were
    for, be it that their sender broke off and the call is computed plainly."""

    def __init__(self) -> None:
        self._tokens: dict[str, int] = {}  # the oldest first

    def note(self, seq_id: str, tokens: int) -> None:
        """A lease has ended, by which so many tokens' KV came."""
        self._tokens.pop(seq_id, None)
        self._tokens[seq_id] = tokens
        if len(self._tokens) > REMEMBERED:
            del self._tokens[next(iter(self._tokens))]

    def tokens(self, seq_id: str) -> int:
        """That came by the lease of this name; 0: nobody knows of it."""
        return self._tokens.get(seq_id, 0)


@dataclass(slots=True)
class Lease(Generic[_T]):
    """Blocks that are kept for KV that is to come."""

    seq_id: str
    blocks: int
    ttl: float  # seconds
    until: float
    held: _T

    def renew(self, now: float) -> None:
        """Its time begins anew."""
        self.until = now + self.ttl


class LeaseTable(Generic[_T]):
    """Leases by their names, within a number of blocks."""

    def __init__(self, most_blocks: int) -> None:
        self._most = most_blocks
        self._leases: dict[str, Lease[_T]] = {}

    def __len__(self) -> int:
        return len(self._leases)

    def __iter__(self) -> Iterator[Lease[_T]]:
        return iter(self._leases.values())

    @property
    def blocks(self) -> int:
        """Of all leases."""
        return sum(lease.blocks for lease in self)

    def open(self, seq_id: str, blocks: int, ttl_ms: int, held: _T, now: float) -> Lease[_T]:
        """A new lease. Raises `MicroServingError` where it would be too much."""
        if self.blocks + blocks > self._most:
            raise MicroServingError(
                "no_kv_capacity",
                f"{blocks} blocks are too many: {self.blocks} of {self._most} that may be are "
                "leased already",
            )
        ttl = bounded_ttl(ttl_ms)
        lease = self._leases[seq_id] = Lease(seq_id, blocks, ttl, now + ttl, held)
        return lease

    def find(self, seq_id: str) -> Lease[_T] | None:
        """The lease of this name, if it stands."""
        return self._leases.get(seq_id)

    def end(self, seq_id: str) -> Lease[_T] | None:
        """Forgets a lease; returns it, if it stood."""
        return self._leases.pop(seq_id, None)

    def expire(self, now: float) -> list[Lease[_T]]:
        """Forgets those whose time is over, and returns them."""
        over = [lease for lease in self if lease.until <= now]
        for lease in over:
            self.end(lease.seq_id)
        return over

    def next_end(self) -> float | None:
        """When the first of them is over."""
        return min((lease.until for lease in self), default=None)
