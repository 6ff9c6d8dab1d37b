"""All shadows at one moment, and what the comparer said of them. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

from penstock.control.declared.fields import said
from penstock.control.errors import Code, NotFound, PenstockError
from penstock.control.state.shadow.spec import ENOUGH_SELF, ShadowSpec

MOST_SHADOWS: Final = 100
TENANT: Final = "_shadow"
"""Under which gateways count what shadows cost, with a shadow's uid as the key: nobody's id."""


@dataclass(frozen=True, slots=True)
class Shadow:
    """A spec with its identity and history."""

    spec: ShadowSpec = field(metadata=said(inner=True))
    uid: str  # hex; tells it from deleted namesakes
    seed: int  # what is sampled follows from it
    created_at: datetime
    paused: bool = False
    ended: str = ""  # why it ended by itself; empty: it goes on

    @property
    def cache_salt(self) -> str:
        """What keeps its calls' prefix caches apart from clients'."""
        return hashlib.sha256(f"cache salt of shadow {self.uid}".encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Compared:
    """What the comparer and the store of usage say; never stored."""

    address: str = ""  # of the comparer's port for gateways; empty: it does not run
    known: frozenset[str] = frozenset()  # uids that it takes pairs of
    enough_self: frozenset[str] = frozenset()  # uids of which it has many of the self arm
    verdicts: Mapping[str, str] = field(default_factory=dict)  # by uid
    used_up: frozenset[str] = frozenset()  # uids that have had their money of the day
    trouble: str = ""  # what became of the comparer, as the end of a sentence; empty: nothing


@dataclass(frozen=True, slots=True)
class Shadows:
    """Part of the cluster view. Mappings are read-only."""

    named: Mapping[str, Shadow] = field(default_factory=dict)
    compared: Compared = field(default_factory=Compared)

    def shadow(self, name: str) -> Shadow:
        """The shadow of this name; raises `unknown-shadow`."""
        if found := self.named.get(name):
            return found
        raise NotFound(f"no shadow {name!r}: GET /admin/v1/shadows lists them", Code.UNKNOWN_SHADOW)

    def with_new(self, shadow: Shadow) -> Shadows:
        """With one more; raises `shadow-exists` and `conflict`."""
        if shadow.spec.name in self.named:
            raise PenstockError(
                f"shadow {shadow.spec.name!r} exists: delete it first", Code.SHADOW_EXISTS
            )
        if len(self.named) >= MOST_SHADOWS:
            raise PenstockError(
                f"there are {MOST_SHADOWS} shadows: delete those that nobody needs", Code.CONFLICT
            )
        return self.having(shadow)

    def having(self, shadow: Shadow) -> Shadows:
        """With this one in the place of its namesake."""
        return replace(self, named=MappingProxyType({**self.named, shadow.spec.name: shadow}))

    def without(self, name: str) -> Shadows:
        """With one less; raises `unknown-shadow`."""
        self.shadow(name)
        left = {each: shadow for each, shadow in self.named.items() if each != name}
        return replace(self, named=MappingProxyType(left))


def why_ended(shadow: Shadow, pairs: int, now: datetime) -> str:
    """Why a shadow of so many pairs is over; empty: it goes on."""
    until = shadow.spec.until
    if 0 < until.pairs <= pairs:
        return f"{until.pairs} pairs are counted"
    if until.at and until.at <= now:
        return f"it is past {until.at.isoformat()}"
    return ""


def has_enough_self(pairs: int) -> bool:
    """Whether the self arm is known well enough to be asked more rarely."""
    return pairs >= ENOUGH_SELF
