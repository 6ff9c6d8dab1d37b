"""Requests that were aboard engines when they died: values and rules of routes.proto, `Suspect`.

The gateways' `admission/suspect_table.h` has the same rules, and says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

# Two reports of one replica within so long speak of the same death.
SAME_DEATH_MS = 10_000
# What is further apart is chance.
TOGETHER_MS = 600_000
# Points from which on a request is refused.
QUARANTINED_AT = 4
# Fingerprints that are kept; beyond, those that are forgotten soonest go first.
MAX_SUSPECTS = 10_000

Suspects = Mapping[bytes, "Suspect"]


class EngineEnd(StrEnum):
    """How an engine ended."""

    CRASHED = "crashed"
    KILLED = "killed"
    HUNG = "hung"
    LOST = "lost"

    @property
    def points(self) -> int:
        """What it is against the requests that were aboard."""
        return 2 if self is EngineEnd.CRASHED else 1


@dataclass(frozen=True, slots=True)
class EngineDeath:
    """An engine died with the request aboard."""

    replica_id: str
    at_ms: int  # milliseconds since 1970
    gateway_id: str
    end: EngineEnd = EngineEnd.CRASHED
    shared: bool = False  # another suspect was aboard


@dataclass(frozen=True, slots=True)
class Suspect:
    """One request, by its fingerprint."""

    fingerprint: bytes
    deployment: str
    deployment_uid: str
    path: str
    deaths: tuple[EngineDeath, ...]
    until_ms: int  # milliseconds since 1970; forgotten from then on
    answered_ms: int = 0  # milliseconds since 1970; deaths up to then were not its doing

    @property
    def points(self) -> int:
        """What stands against it: the first death, and those that no other suspect shared."""
        late = [d for d in self.deaths if d.at_ms >= self.deaths[-1].at_ms - TOGETHER_MS]
        return sum(d.end.points for i, d in enumerate(late) if i == 0 or not d.shared)

    @property
    def is_quarantined(self) -> bool:
        """Whether gateways refuse it."""
        return self.points >= QUARANTINED_AT


def merged(known: Suspects, reported: Iterable[Suspect]) -> Suspects:
    """What is known after a gateway's report; `known` itself where that tells nothing new."""
    new = dict(known)
    for suspect in reported:
        old = new.get(suspect.fingerprint)
        new[suspect.fingerprint] = _merge(old, suspect) if old else _with_deaths(suspect, ())
    new |= _shared(new, known)
    if len(new) > MAX_SUSPECTS:
        kept = sorted(new.values(), key=lambda s: s.until_ms)[-MAX_SUSPECTS:]
        new = {s.fingerprint: s for s in kept}
    return known if new == known else new


def remaining(known: Suspects, now_ms: int) -> Suspects:
    """Those that are not yet to be forgotten."""
    if all(s.until_ms > now_ms for s in known.values()):
        return known
    return {f: s for f, s in known.items() if s.until_ms > now_ms}


def released(known: Suspects, fingerprint: bytes) -> Suspects:
    """Without this one; gateways take it up again once a snapshot no longer has it."""
    return {f: s for f, s in known.items() if f != fingerprint}


def _merge(old: Suspect, new: Suspect) -> Suspect:
    answered = max(old.answered_ms, new.answered_ms)
    merged_deaths = _with_deaths(replace(new, answered_ms=answered), old.deaths)
    return replace(merged_deaths, until_ms=max(old.until_ms, new.until_ms))


def _with_deaths(suspect: Suspect, known: tuple[EngineDeath, ...]) -> Suspect:
    """With its deaths in their order, those that it was answered after left out."""
    deaths = list(known)
    for death in sorted(suspect.deaths, key=lambda d: d.at_ms):
        same = next((i for i, other in enumerate(deaths) if _same(death, other)), None)
        if same is None:
            deaths.append(death)
        elif death.shared:
            deaths[same] = replace(deaths[same], shared=True)
    answered = suspect.answered_ms
    kept = sorted((d for d in deaths if not answered or d.at_ms > answered), key=lambda d: d.at_ms)
    return replace(suspect, deaths=tuple(kept))


def _shared(suspects: Suspects, before: Suspects) -> dict[bytes, Suspect]:
    """Those that were suspects already when they were aboard the same engine, through whichever
    gateways: neither is proved to have ended it. Of those that came to be so since `before`."""
    again = [s for s in suspects.values() if len(s.deaths) > 1]
    if all(before.get(s.fingerprint) is s for s in again):
        return {}
    later = [(d, s.fingerprint) for s in again for d in s.deaths[1:]]
    later.sort(key=lambda each: (each[0].replica_id, each[0].at_ms))
    found: set[tuple[EngineDeath, bytes]] = set()
    for one, other in pairwise(later):
        if _same(one[0], other[0]):
            found |= {one, other}
    return {
        s.fingerprint: replace(
            s,
            deaths=tuple(
                replace(d, shared=(d, s.fingerprint) in found or d.shared) for d in s.deaths
            ),
        )
        for s in again
    }


def _same(one: EngineDeath, other: EngineDeath) -> bool:
    near = abs(one.at_ms - other.at_ms) <= SAME_DEATH_MS
    return one.replica_id == other.replica_id and near
