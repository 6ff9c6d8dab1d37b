"""Which replica should hold which adapters: a pure function from what is wanted and what is so.

A slot is not a pin. An adapter that is wanted somewhere stays there; the others are guests, of
which the least recently used goes first when a slot is needed, and never one that is in use.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from penstock.adapters.adapter import AdapterRef


class Urgency(IntEnum):
    """Whose places are given first, and taken away last."""

    PINNED = 0  # stays whoever else asks
    PRELOADED = 1  # wanted before anybody asks
    ASKED = 2  # a request waits for it


@dataclass(frozen=True, slots=True)
class Desired:
    """On how many replicas of a deployment an adapter should be."""

    ref: AdapterRef
    replicas: int | None = None  # none: all of them
    urgency: Urgency = Urgency.PRELOADED

    def __post_init__(self) -> None:
        """Refuses a number that is none of replicas."""
        if self.replicas is not None and self.replicas < 0:
            raise ValueError(f"{self.ref} cannot be on {self.replicas} replicas")


@dataclass(frozen=True, slots=True)
class Holder:
    """A replica that is ready, and the adapters in its engine."""

    replica: str
    slots: int
    holds: frozenset[AdapterRef] = frozenset()  # those on their way into it among them
    in_use: frozenset[AdapterRef] = frozenset()  # of these, by requests that run or wait
    # Seconds of any clock; of one that nobody has used yet, when it came.
    last_used: Mapping[AdapterRef, float] = field(default_factory=dict)
    failed: frozenset[AdapterRef] = frozenset()  # whose loads failed here lately


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do on one replica: `unload` first, then `load`."""

    load: tuple[AdapterRef, ...] = ()
    unload: tuple[AdapterRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Placement:
    """What to do, and what cannot be done."""

    plans: Mapping[str, Plan]  # by replica; those without work are missing
    unplaced: Mapping[AdapterRef, int]  # how many replicas it should be on besides


def place(
    desired: Sequence[Desired], served: Collection[AdapterRef], holders: Sequence[Holder]
) -> Placement:
    """The next steps towards what is desired; of equally urgent ones, the first go first.

    `served`: all that may be held; any other is unloaded as soon as nobody uses it.
    """
    rooms = [_Room(holder, served, {want.ref for want in desired}) for holder in holders]
    unplaced: dict[AdapterRef, int] = {}
    for urgency in Urgency:
        wanted = _wanted([want for want in desired if want.urgency == urgency], len(rooms))
        # All keep what they have before the first of them gets more.
        for ref, replicas in wanted.items():
            _keep(ref, replicas, rooms)
        for ref, replicas in wanted.items():
            having = sum(room.has(ref) for room in rooms)
            missing = max(0, replicas - having)
            left = _spread(ref, missing, rooms) if ref in served else missing
            if left:
                unplaced[ref] = max(left, unplaced.get(ref, 0))
    for room in rooms:
        room.shrink()
    return Placement({room.replica: room.plan() for room in rooms if room.changed()}, unplaced)


def _wanted(desired: Sequence[Desired], all_replicas: int) -> dict[AdapterRef, int]:
    """On how many replicas each should be, in their order; the most that anybody says."""
    wanted: dict[AdapterRef, int] = {}
    for want in desired:
        replicas = all_replicas if want.replicas is None else want.replicas
        wanted[want.ref] = max(replicas, wanted.get(want.ref, 0))
    return wanted


def _keep(ref: AdapterRef, replicas: int, rooms: Sequence[_Room]) -> None:
    """Marks the places that it has already, as far as it is wanted there."""
    having = sorted((room for room in rooms if room.has(ref)), key=lambda room: room.replica)
    for room in having[:replicas]:
        room.keep(ref)


def _spread(ref: AdapterRef, missing: int, rooms: Sequence[_Room]) -> int:
    """Gives the adapter to so many more replicas: the emptiest first, then those whose guest is
    missed least; how many found no room."""
    for room in sorted(rooms, key=lambda room: (-room.free(), room.loss(), room.replica)):
        if missing and room.admit(ref):
            missing -= 1
    return missing


class _Room:
    """The slots of one replica while they are dealt out."""

    def __init__(
        self, holder: Holder, served: Collection[AdapterRef], wanted_refs: Collection[AdapterRef]
    ) -> None:
        self._holder = holder
        self._wanted = wanted_refs
        self._holds = {ref for ref in holder.holds if ref in served or ref in holder.in_use}
        self._kept: set[AdapterRef] = set()
        self.replica = holder.replica

    def has(self, ref: AdapterRef) -> bool:
        return ref in self._holds

    def keep(self, ref: AdapterRef) -> None:
        self._kept.add(ref)

    def free(self) -> int:
        return max(0, self._holder.slots - len(self._holds))

    def loss(self) -> tuple[bool, float, str]:
        """What it takes to make room here, comparable; of no meaning where there is room."""
        return min(map(self._worth, self._guests()), default=(True, math.inf, ""))

    def admit(self, ref: AdapterRef) -> bool:
        """Makes room for the adapter and gives it; whether that was possible."""
        if self.has(ref) or ref in self._holder.failed:
            return False
        if not self._make_room(self._holder.slots - 1):
            return False
        self._holds.add(ref)
        self.keep(ref)
        return True

    def shrink(self) -> None:
        """Lets guests go that are beyond the slots."""
        surplus = max(0, len(self._holds) - self._holder.slots)
        self._holds.difference_update(sorted(self._guests(), key=self._worth)[:surplus])

    def _make_room(self, most: int) -> bool:
        """Lets guests go until so many are held; where that is impossible, none goes."""
        surplus = len(self._holds) - most
        if surplus > 0:
            guests = sorted(self._guests(), key=self._worth)
            if most < 0 or len(guests) < surplus:
                return False
            self._holds.difference_update(guests[:surplus])
        return most >= 0

    def _guests(self) -> set[AdapterRef]:
        return self._holds - self._kept - self._holder.in_use

    def _worth(self, ref: AdapterRef) -> tuple[bool, float, str]:
        return ref in self._wanted, self._holder.last_used.get(ref, 0.0), str(ref)

    def changed(self) -> bool:
        return self._holds != self._holder.holds

    def plan(self) -> Plan:
        return Plan(
            load=tuple(sorted(self._holds - self._holder.holds)),
            unload=tuple(sorted(self._holder.holds - self._holds)),
        )


__all__ = ["Desired", "Holder", "Placement", "Plan", "Urgency", "place"]
