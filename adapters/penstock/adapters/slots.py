"""Who makes room in an engine's slots: a pure function of who holds them and who wants one.

A slot is not a pin: what is not pinned leaves when it is missed least, and never while it is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Standing(IntEnum):
    """How an adapter stands with its replica. The lowest leave first."""

    GUEST = 0  # somebody asked for it once
    KEPT = 1  # it is to be there before anybody asks
    PINNED = 2  # it makes room for nobody


class Claim(IntEnum):
    """Whose slots an adapter may take that is to come: free ones, and those of a lower standing."""

    SPARE = 0  # it was there and had to leave: it returns when nobody else has the slot
    PRELOADED = 1  # it goes before guests
    ASKED = 2  # a call waits for it, or it is pinned


@dataclass(frozen=True, slots=True)
class Occupant:
    """An adapter in a slot."""

    name: str
    standing: Standing
    in_use: bool
    last_used: float  # seconds of any clock; of one that nobody has used yet, when it came


def who_goes(
    occupants: Iterable[Occupant], slots: int, claim: Claim, coming: int = 1
) -> tuple[str, ...] | None:
    """Who leaves so that `coming` more fit: guests first, then the least recently used. None where
    that is impossible."""
    there = list(occupants)
    surplus = len(there) + coming - slots
    if surplus <= 0:
        return ()
    may_go = [one for one in there if not one.in_use and one.standing < claim]
    if coming > slots or len(may_go) < surplus:
        return None
    may_go.sort(key=lambda one: (one.standing, one.last_used, one.name))
    return tuple(one.name for one in may_go[:surplus])


def who_closes(occupants: Iterable[Occupant], claim: Claim) -> str | None:
    """Who takes no new calls until it can leave, where all are in use and the claim has waited for
    long: guests first, then who came first. None where nobody has to.

    `occupants`: in the order in which they came. Without it those that are never idle would keep
    out all others.
    """
    below = [one for one in occupants if one.standing < claim]
    return min(below, key=lambda one: one.standing).name if below else None
