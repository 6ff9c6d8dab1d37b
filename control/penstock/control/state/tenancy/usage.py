"""What requests cost, by tenant, key, deployment and adapter. Pure.

Gateways count from the beginning of their process (an instance) and tell the counts, not what came
on top: so a report that is lost, doubled or late changes nothing. Of each count the highest that
was seen stands, and what it grew by is added to the day on which that was heard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

# The counts of an instance that was not heard for longer are forgotten: it is no more.
REMEMBERED = timedelta(days=90)
# A count beyond is broken: what JSON carries exactly, and sums of it have room in the store.
MOST = 2**53


class UsageKey(NamedTuple):
    """Whose requests, and at what."""

    tenant: str  # empty: requests without a key
    key_id: str
    deployment: str
    adapter: str  # "name@version"; empty: the base model


class Counts(NamedTuple):
    """As in routes.proto, UsageReport."""

    requests: int = 0  # that went to a replica
    rejected: int = 0  # by a limit of the tenant
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0  # of the prompt tokens
    cost_nanousd: int = 0  # billionths of a US dollar

    @property
    def tokens(self) -> int:
        """What a quota counts."""
        return self.prompt_tokens + self.completion_tokens


class Reading(NamedTuple):
    """What one instance has counted for one key, as heard on a day."""

    day: date  # of UTC
    instance: str
    of: UsageKey
    counts: Counts


class Holder(NamedTuple):
    """Who is held to limits of a day: a key, a tenant as a whole, or a deployment."""

    tenant: str  # empty: requests without a key
    key_id: str
    deployment: str = ""  # not empty: it is, whoever asks, and the others are empty


@dataclass(frozen=True, slots=True)
class DaySums:
    """What all gateways together counted on a day, as far as it was stored then."""

    day: date  # of UTC
    as_of: datetime
    by_key: Mapping[Holder, Counts]  # of all deployments
    by_deployment: Mapping[str, Counts] = field(default_factory=dict)  # of all keys

    def by_tenant(self) -> Mapping[str, Counts]:
        """Of all keys."""
        found: dict[str, Counts] = {}
        for of, counts in self.by_key.items():
            found[of.tenant] = added(counts, found.get(of.tenant, Counts()))
        return found


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What was added up for one day."""

    day: date
    of: UsageKey
    counts: Counts


def highest(one: Counts, other: Counts) -> Counts:
    """Of each count the higher one, as far as it can be believed."""
    return Counts(*(min(max(a, b), MOST) for a, b in zip(one, other, strict=True)))


def growth(before: Counts, now: Counts) -> Counts:
    """What `now` has on top of `before`; nothing where it is older."""
    joined = highest(before, now)
    return Counts(*(b - a for a, b in zip(before, joined, strict=True)))


def added(one: Counts, other: Counts) -> Counts:
    """Both together."""
    return Counts(*(min(a + b, MOST) for a, b in zip(one, other, strict=True)))


def midnight_after(day: date) -> int:
    """When a day of UTC ends, in milliseconds since 1970."""
    return int(datetime.combine(day + timedelta(days=1), time(), UTC).timestamp()) * 1000


def total(rows: Iterable[Counts]) -> Counts:
    """All together."""
    result = Counts()
    for counts in rows:
        result = added(result, counts)
    return result
