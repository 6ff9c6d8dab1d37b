"""An alias: a movable name of a deployment for adapter versions, with the way it came.

Clients say `deployment:alias`, and so get whatever it names now; or `deployment:name@version`, and
get that for ever.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from penstock.adapters.adapter import AdapterRef, BaseModelFamily
from penstock.adapters.version import AdapterVersion, VersionState

MOST_SHARES: Final = 8
LARGEST_WEIGHT: Final = 1000
MOST_MOVES: Final = 100
"""Moves that are kept, the newest."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class BadAlias(ValueError):
    """An alias that cannot be, or cannot name this; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Target:
    """What an alias names: one version, or several with their shares of the sessions."""

    shares: tuple[tuple[AdapterRef, int], ...]  # weights in lowest terms, sorted by version

    @classmethod
    def of(cls, ref: AdapterRef) -> Target:
        """One version for everybody."""
        return cls(((ref, 1),))

    @classmethod
    def split(cls, weights: Mapping[AdapterRef, int]) -> Target:
        """Several versions by weight; one of weight 0 is left out. Raises `BadAlias`."""
        for ref, weight in weights.items():
            if type(weight) is not int or not 0 <= weight <= LARGEST_WEIGHT:
                raise BadAlias(f"the weight of {ref} is {weight!r}, not 0 to {LARGEST_WEIGHT}")
        common = math.gcd(*weights.values()) or 1
        shares = ((ref, weight // common) for ref, weight in weights.items() if weight)
        return cls(tuple(sorted(shares)))

    def __post_init__(self) -> None:
        """Refuses nothing at all, too many versions, and shares that are none."""
        if not 1 <= len(self.shares) <= MOST_SHARES:
            raise BadAlias(f"it names {len(self.shares)} versions, 1 to {MOST_SHARES} can share")
        if any(weight < 1 for _, weight in self.shares):
            raise BadAlias(f"{self} gives a version no share")
        if len(set(self.refs)) != len(self.shares):
            raise BadAlias("it names a version twice")

    @property
    def refs(self) -> tuple[AdapterRef, ...]:
        """The versions, without their shares."""
        return tuple(ref for ref, _ in self.shares)

    def __str__(self) -> str:
        """`pirate@1`, or `pirate@1 90, pirate@2 10`."""
        if len(self.shares) == 1:
            return str(self.shares[0][0])
        return ", ".join(f"{ref} {weight}" for ref, weight in self.shares)


@dataclass(frozen=True, slots=True)
class Move:
    """One change of an alias."""

    target: Target
    at: datetime
    by: str
    undoes: bool = False


@dataclass(frozen=True, slots=True)
class Alias:
    """An alias and its moves, oldest first; the last says what it names now."""

    deployment: str
    name: str
    moves: tuple[Move, ...]
    preload: int | None = None  # replicas that load what it names before anybody asks; none: all
    pinned: bool = False  # what it names is kept there, whoever else asks for the room

    def __post_init__(self) -> None:
        """Refuses names that clients could not say, and an alias that names nothing."""
        if self.preload is not None and self.preload < 0:
            raise BadAlias(f"preload is {self.preload}: it is a number of replicas")
        if not _NAME.fullmatch(self.deployment):
            raise BadAlias(f"the deployment {self.deployment!r} is no name of one")
        if not _NAME.fullmatch(self.name):
            raise BadAlias(f"the alias {self.name!r} is not made of letters, digits, . _ -")
        if not self.moves:
            raise BadAlias(f"the alias {self.full_name} names nothing")

    @property
    def full_name(self) -> str:
        """What clients say."""
        return f"{self.deployment}:{self.name}"

    @property
    def target(self) -> Target:
        """What it names now."""
        return self.moves[-1].target

    def moved(self, move: Move) -> Alias:
        """The alias after a move; one to where it is already changes nothing."""
        if move.target == self.target:
            return self
        return replace(self, moves=(*self.moves, move)[-MOST_MOVES:])

    def undone(self, at: datetime, by: str) -> Alias:
        """The alias as it was before its last move that stands; undone twice, it is two moves
        back. Raises `BadAlias` where no move is left. What it names then may have been retired
        meanwhile: ask `check_target`, as for any move."""
        standing = self._standing
        if len(standing) < 2:
            raise BadAlias(
                f"{self.full_name} has not moved since it was made, or no move that is known still"
                " stands: nothing to undo; its history says what it named"
            )
        return self.moved(Move(standing[-2], at, by, undoes=True))

    @property
    def _standing(self) -> list[Target]:
        """What it named, without the moves that were taken back and those that did so."""
        standing: list[Target] = []
        for move in self.moves:
            if move.undoes:
                standing = standing[:-1]
            if not standing or standing[-1] != move.target:
                standing.append(move.target)
        return standing


def check_target(
    target: Target,
    known: Mapping[AdapterRef, AdapterVersion],
    family: BaseModelFamily,
) -> None:
    """Raises `BadAlias` where the target names a version that is not registered, is retired, or was
    made for another family than the deployment's."""
    for ref in target.refs:
        version = known.get(ref)
        if version is None:
            raise BadAlias(f"{ref} is not registered{_those_of(ref, known)}")
        if version.state is VersionState.RETIRED:
            others = (state for state in VersionState if state is not VersionState.RETIRED)
            raise BadAlias(f"{ref} is {version.state}: an alias may name {', '.join(others)}")
        if version.manifest.family != family:
            raise BadAlias(
                f"{ref} is made for {version.manifest.family}, the deployment serves {family}"
            )


def _those_of(ref: AdapterRef, known: Mapping[AdapterRef, AdapterVersion]) -> str:
    others = sorted(other.version for other in known if other.name == ref.name)
    return f"; of {ref.name} there is {', '.join(others[-10:])}" if others else ""
