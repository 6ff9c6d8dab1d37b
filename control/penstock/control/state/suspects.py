"""Requests that were aboard engines when they died: values and rules of routes.proto, `Suspect`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

# Two reports of one replica within so long speak of the same death.
SAME_DEATH_MS = 10_000
# Deaths from which on a request is refused.
QUARANTINED_AT = 2
# Fingerprints that are kept; beyond, those that are forgotten soonest go first.
MAX_SUSPECTS = 10_000

Suspects = Mapping[bytes, "Suspect"]


@dataclass(frozen=True, slots=True)
class EngineDeath:
    """An engine died with the request aboard."""

    replica_id: str
    at_ms: int  # milliseconds since 1970
    gateway_id: str


@dataclass(frozen=True, slots=True)
class Suspect:
    """One request, by its fingerprint."""

    fingerprint: bytes
    deployment: str
    deployment_uid: str
    path: str
    deaths: tuple[EngineDeath, ...]
    until_ms: int  # milliseconds since 1970; forgotten from then on

    @property
    def is_quarantined(self) -> bool:
        """Whether gateways refuse it."""
        return len(self.deaths) >= QUARANTINED_AT


def merged(known: Suspects, reported: Iterable[Suspect]) -> Suspects:
    """What is known after a gateway's report; `known` itself where that tells nothing new."""
    new = dict(known)
    for suspect in reported:
        old = new.get(suspect.fingerprint)
        new[suspect.fingerprint] = _merge(old, suspect) if old else _with_deaths(suspect, ())
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
    merged_deaths = _with_deaths(new, old.deaths)
    return replace(merged_deaths, until_ms=max(old.until_ms, new.until_ms))


def _with_deaths(suspect: Suspect, known: tuple[EngineDeath, ...]) -> Suspect:
    deaths = list(known)
    for death in sorted(suspect.deaths, key=lambda d: d.at_ms):
        if not any(_same(death, other) for other in deaths):
            deaths.append(death)
    return replace(suspect, deaths=tuple(deaths))


def _same(one: EngineDeath, other: EngineDeath) -> bool:
    near = abs(one.at_ms - other.at_ms) <= SAME_DEATH_MS
    return one.replica_id == other.replica_id and near
