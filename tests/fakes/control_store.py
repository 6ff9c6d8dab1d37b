"""A Store that forgets with its process, and one that fails on demand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime

from penstock.control.errors import Code, PenstockError, StoreUnavailable
from penstock.control.state.events import (
    KEPT_FOR,
    MOST_KEPT,
    REPEATS_WITHIN,
    Event,
    EventPage,
    KeptEvent,
    Wanted,
)
from penstock.control.state.tenancy.spend import Spend, SpendRow
from penstock.control.state.tenancy.usage import (
    Counts,
    Holder,
    Reading,
    UsageKey,
    UsageRow,
    added,
    growth,
    highest,
)
from penstock.control.store.store import (
    UNAUDITED,
    AuditEntry,
    Author,
    Change,
    Contents,
    Document,
    Key,
    Stored,
)


class MemoryStore:
    """Documents in a dict; passes the Store contract. `failing` makes every write fail."""

    def __init__(self, contents: Contents | None = None) -> None:
        self.failing = False
        self.unreadable = False  # what was used
        self.refused = 0  # writes
        self._version = contents.version if contents else 0
        self._documents: dict[Key, Stored] = dict(contents.documents) if contents else {}
        self._audit: list[AuditEntry] = []
        self._usage: dict[tuple[date, UsageKey], Counts] = {}
        self._seen: dict[tuple[str, UsageKey], Counts] = {}
        self._events: dict[int, KeptEvent] = {}
        self._said: dict[tuple[str, ...], int] = {}
        self._newest = self._forgotten = 0  # of events

    @property
    def documents(self) -> dict[Key, Stored]:
        """What is stored."""
        return self._documents

    async def load(self) -> Contents:
        return Contents(self._version, dict(self._documents))

    async def apply(self, changes: Sequence[Change], author: Author, at: datetime) -> int:
        if self.failing:
            self.refused += 1
            raise StoreUnavailable("the store was told to fail")
        for change in changes:
            stored = self._documents.get(change.key)
            found = stored.version if stored else 0
            if change.expected_version not in (None, found):
                raise PenstockError(f"{change.key} is at version {found}", Code.REVISION_MISMATCH)
        self._version += 1
        for change in changes:
            self._apply_one(change, author, at)
        return self._version

    async def audit(
        self, limit: int, *, before: int | None = None, without: str = ""
    ) -> list[AuditEntry]:
        found = (e for e in self._audit[::-1] if before is None or e.version < before)
        return [entry for entry in found if entry.who != without][:limit]

    async def record(self, readings: Sequence[Reading]) -> None:
        if self.failing:
            self.refused += 1
            raise StoreUnavailable("the store was told to fail")
        for day, instance, of, counts in readings:
            before = self._seen.get((instance, of), Counts())
            self._seen[instance, of] = highest(before, counts)
            if any(grown := growth(before, counts)):
                self._usage[day, of] = added(grown, self._usage.get((day, of), Counts()))

    async def usage(self, first: date, last: date, tenant: str | None = None) -> list[UsageRow]:
        return [
            UsageRow(day, of, counts)
            for (day, of), counts in sorted(self._usage.items())
            if first <= day <= last and tenant in (None, of.tenant)
        ]

    async def spent(self, first: date, last: date, deployment: str | None = None) -> list[SpendRow]:
        if self.unreadable:
            raise StoreUnavailable("the store was told to fail")
        found: dict[tuple[date, str], Spend] = {}
        for row in await self.usage(first, last):
            if deployment in (None, row.of.deployment):
                key = (row.day, row.of.deployment)
                found[key] = plus(found.get(key, Spend()), row.counts)
        return [SpendRow(*key, spend) for key, spend in sorted(found.items())]

    async def sums_of(self, day: date) -> Mapping[Holder, Counts]:
        if self.unreadable:
            raise StoreUnavailable("the store was told to fail")
        sums: dict[Holder, Counts] = {}
        for row in await self.usage(day, day):
            of = Holder(row.of.tenant, row.of.key_id)
            sums[of] = added(row.counts, sums.get(of, Counts()))
        return sums

    async def keep_events(self, events: Sequence[Event]) -> None:
        if self.failing:
            self.refused += 1
            raise StoreUnavailable("the store was told to fail")
        for event in events:
            self._newest += 1
            kept = KeptEvent(self._newest, event, 1, event.at)
            said = (event.kind, event.name, event.reason, event.text)
            same = self._events.get(self._said.get(said, 0))
            if same and event.at - same.event.at <= REPEATS_WITHIN:
                kept = replace(kept, count=same.count + 1, first_at=same.first_at)
                del self._events[same.id]
            self._events[kept.id], self._said[said] = kept, kept.id
        begin = max((each.at for each in events), default=None)
        old = [n for n, it in self._events.items() if begin and it.event.at < begin - KEPT_FOR]
        for number in [*old, *list(self._events)[:-MOST_KEPT]]:
            self._forgotten = max(self._forgotten, number)
            self._events.pop(number, None)

    async def events(
        self, wanted: Wanted, *, after: int = 0, most: int | None = None, last: bool = False
    ) -> EventPage:
        if self.unreadable:
            raise StoreUnavailable("the store was told to fail")
        found = [
            each
            for each in self._events.values()
            if each.id > after
            and all(getattr(each.event, name) == said for name, said in wanted.words.items())
            and (wanted.since is None or each.event.at >= wanted.since)
        ]
        count = len(found) if most is None else min(most, len(found))
        shown = found[len(found) - count :] if last else found[:count]
        return EventPage(tuple(shown), self._newest, self._forgotten)

    async def close(self) -> None:
        pass

    def _apply_one(self, change: Change, author: Author, at: datetime) -> None:
        stored = self._documents.pop(change.key, None)
        before = stored.document if stored else None
        after: Document | None = None
        if change.document is not None:
            after = json.loads(json.dumps(change.document))
            self._documents[change.key] = Stored(after, self._version)
        entry = AuditEntry(self._version, at, author.who, author.what, change.key, before, after)
        if change.key.kind not in UNAUDITED:
            self._audit.append(entry)


def plus(spend: Spend, counts: Counts) -> Spend:
    """What was spent, and what these counts tell."""
    return Spend(
        spend.requests + counts.requests,
        spend.prompt_tokens + counts.prompt_tokens,
        spend.completion_tokens + counts.completion_tokens,
        spend.nanousd + counts.cost_nanousd,
    )
