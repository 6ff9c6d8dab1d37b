"""Which replica is to keep which adapters: a pure function from what is wanted and what is so.

A slot is not a pin. What is kept is loaded before anybody asks for it; whatever else a replica has
room for, it loads when it is asked, and lets go when the room is needed (`slots.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.adapters.adapter import AdapterRef


@dataclass(frozen=True, slots=True)
class Desired:
    """On how many replicas of a deployment an adapter should be before anybody asks for it."""

    ref: AdapterRef
    replicas: int | None = None  # none: all of them
    pinned: bool = False  # makes room for nobody, and is placed before those that are not

    def __post_init__(self) -> None:
        """Refuses a number that is none of replicas."""
        if self.replicas is not None and self.replicas < 0:
            raise ValueError(f"{self.ref} cannot be on {self.replicas} replicas")


@dataclass(frozen=True, slots=True)
class Holder:
    """A replica, and the adapters that are in its engine or on their way into it."""

    replica: str
    slots: int
    holds: frozenset[AdapterRef] = frozenset()
    failed: frozenset[AdapterRef] = frozenset()  # whose loads failed here


@dataclass(frozen=True, slots=True)
class Kept:
    """An adapter that a replica is to keep."""

    ref: AdapterRef
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class Placement:
    """What each replica is to keep, and what found no place."""

    keeps: Mapping[str, tuple[Kept, ...]]  # by replica, all of them; pinned ones first
    unplaced: Mapping[AdapterRef, int] = field(default_factory=dict)  # replicas that it lacks


def place(desired: Sequence[Desired], holders: Sequence[Holder]) -> Placement:
    """Gives every adapter its places: pinned ones first, then those that come first; where it is
    already before elsewhere, then where most room is left, and last where its load failed: who is
    to try again, and when, is that replica's own to say."""
    rooms = [_Room(holder) for holder in sorted(holders, key=lambda holder: holder.replica)]
    unplaced: dict[AdapterRef, int] = {}
    for ref, (replicas, pinned) in _wanted(desired, len(rooms)).items():
        missing = replicas
        for room in _best_first(ref, rooms):
            if missing and room.give(Kept(ref, pinned)):
                missing -= 1
        if missing:
            unplaced[ref] = missing
    return Placement({room.replica: room.keeps() for room in rooms}, unplaced)


def _best_first(ref: AdapterRef, rooms: Sequence[_Room]) -> list[_Room]:
    return sorted(rooms, key=lambda room: (room.failed(ref), not room.has(ref), -room.free()))


def _wanted(desired: Sequence[Desired], all_replicas: int) -> Mapping[AdapterRef, tuple[int, bool]]:
    """On how many replicas each should be, in the order of their places: the most that anybody
    says, and pinned where anybody says so."""
    wanted: dict[AdapterRef, tuple[int, bool]] = {}
    for want in sorted(desired, key=lambda want: not want.pinned):
        replicas = all_replicas if want.replicas is None else min(want.replicas, all_replicas)
        said, pinned = wanted.get(want.ref, (0, False))
        wanted[want.ref] = max(replicas, said), pinned or want.pinned
    return wanted


class _Room:
    """The slots of one replica while they are dealt out."""

    def __init__(self, holder: Holder) -> None:
        self._holder = holder
        self._kept: list[Kept] = []
        self.replica = holder.replica

    def has(self, ref: AdapterRef) -> bool:
        return ref in self._holder.holds

    def failed(self, ref: AdapterRef) -> bool:
        return ref in self._holder.failed

    def free(self) -> int:
        return self._holder.slots - len(self._kept)

    def give(self, kept: Kept) -> bool:
        """Whether the adapter is kept here now."""
        if self.free() < 1:
            return False
        self._kept.append(kept)
        return True

    def keeps(self) -> tuple[Kept, ...]:
        return tuple(self._kept)
