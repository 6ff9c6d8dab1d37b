"""What gateways counted of a canary's two arms: values that only grow, and add up. Pure.

The fields are those of routes.proto, `CanaryArm`, where it is said what each counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from datetime import datetime
from operator import add
from typing import Any, Final

BINS: Final = 256
PER_OCTAVE: Final = 8
SHORTEST_US: Final = (
    16.0  # where bin 1 would begin were there no bin 0: bin i from this * 2^(i/8) on
)

Tally = tuple[tuple[str, int], ...]  # by reason, sorted
Bins = tuple[tuple[int, int], ...]  # (bin, count), sorted by bin


def begin_us(index: int) -> float:
    """Where a bin begins, in microseconds."""
    return SHORTEST_US * math.exp2(index / PER_OCTAVE)


@dataclass(frozen=True, slots=True)
class ArmCounts:
    """One arm."""

    sessions: int = 0
    bad_sessions: int = 0
    errors: Tally = ()
    answered_sessions: int = 0
    bad_finishes: int = 0
    ttft: Bins = ()
    between_tokens: Bins = ()
    total: Bins = ()
    requests: int = 0
    finishes: Tally = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    saved: int = 0
    saved_sessions: int = 0
    refused: int = 0

    def plus(self, other: ArmCounts) -> ArmCounts:
        """Both together."""
        return ArmCounts(*(_plus(*pair) for pair in _pairs(self, other)))

    def highest(self, other: ArmCounts) -> ArmCounts:
        """Of two readings of the same gateway's process: counts only grow, so a late one says
        nothing new."""
        return ArmCounts(*(_highest(*pair) for pair in _pairs(self, other)))


@dataclass(frozen=True, slots=True)
class Counts:
    """Both arms."""

    stable: ArmCounts = field(default_factory=ArmCounts)
    candidate: ArmCounts = field(default_factory=ArmCounts)

    def plus(self, other: Counts) -> Counts:
        """Both together."""
        return Counts(self.stable.plus(other.stable), self.candidate.plus(other.candidate))

    def highest(self, other: Counts) -> Counts:
        """Of two readings of the same gateway's process."""
        return Counts(self.stable.highest(other.stable), self.candidate.highest(other.candidate))


@dataclass(frozen=True, slots=True)
class Reading:
    """What one process of a gateway has counted of a step."""

    gateway: str
    instance: str
    at: datetime  # of the report
    counts: Counts


@dataclass(frozen=True, slots=True)
class StepCounts:
    """What a gateway tells of one run's step."""

    uid: str  # of the run
    step: int
    counts: Counts


def summed(readings: Iterable[Reading]) -> Counts:
    """What all have counted."""
    total = Counts()
    for reading in readings:
        total = total.plus(reading.counts)
    return total


def _pairs(one: ArmCounts, other: ArmCounts) -> Iterator[tuple[Any, Any]]:
    return ((getattr(one, each.name), getattr(other, each.name)) for each in fields(ArmCounts))


def _plus(one: Any, other: Any) -> Any:
    return one + other if isinstance(one, int) else _merged(one, other, add)


def _highest(one: Any, other: Any) -> Any:
    return max(one, other) if isinstance(one, int) else _merged(one, other, max)


def _merged(one: Any, other: Any, how: Callable[[int, int], int]) -> Any:
    """Of two sorted rows of pairs."""
    if one == other and how is max:
        return one
    found = dict(one)
    for name, count in other:
        found[name] = how(found.get(name, 0), count)
    return tuple(sorted(found.items()))
