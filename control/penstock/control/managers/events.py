"""Tells what happens: follows the view, has events stored, and wakes those who follow them.

Whoever decides waits for nobody here. A store that fails, or is slow for long, costs events: they
are counted, and what decides goes on.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol

from penstock.control.errors import StoreUnavailable
from penstock.control.managers.changes import ChangeSignal
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.state.cluster import ClusterView
from penstock.control.state.events import Event, EventKind, KeptEvent, Wanted
from penstock.control.state.happened import happened, what_is_told
from penstock.control.store.events import EventStore
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

WRITE_EVERY: Final = timedelta(seconds=1)
MOST_VIEWS: Final = 256  # that wait to be told of: beyond, steps in between go unseen
PAGE: Final = 500  # events that a follower is given at a time
STILL_THERE: Final = timedelta(seconds=10)  # a follower is told something at least so often
# No store remembers them: a new head learns them again, which is no news.
LEARNED_AGAIN: Final = (EventKind.GATEWAY, EventKind.QUARANTINE)


class Followed(NamedTuple):
    """What a follower is given."""

    events: tuple[KeptEvent, ...]
    reaches: int  # the id behind which it goes on
    misses: int | None = None  # behind this id some are gone; None: none is


class EventObserver(Protocol):
    """Counts what happens."""

    def happened(self, events: Sequence[Event]) -> None:
        """These did."""

    def events_lost(self, count: int) -> None:
        """So many were not stored."""


class EventManager:
    """From its making on. `follow` gives what is stored, and then what comes."""

    def __init__(
        self, cluster: ClusterStore, store: EventStore, clock: Clock, observer: EventObserver
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._clock = clock
        self._observer = observer
        self._told = cluster.view()
        self._views: deque[tuple[datetime, ClusterView]] = deque()
        self._changed = ChangeSignal()
        self._followers: set[ChangeSignal] = set()
        self._closed = False
        self._last_words: dict[tuple[str, str], str] | None = None  # of LEARNED_AGAIN; None: unread
        cluster.listen(self._note, what_is_told)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._changed.wait()
            await self.write()
            await self._clock.sleep(WRITE_EVERY)

    async def write(self) -> None:
        """Has stored what has happened so far."""
        events = await self._news()
        if not events:
            return
        self._observer.happened(events)
        if self._cluster.view().held:  # the store may be the wrong one
            return
        try:
            await self._store.keep_events(events)
        except StoreUnavailable as error:
            self._observer.events_lost(len(events))
            log.error("events not stored", extra={"error": str(error), "events": len(events)})
        self._wake()

    async def follow(self, wanted: Wanted, after: int | None) -> AsyncGenerator[Followed, None]:
        """What is behind an id, or comes from now on, until the head ends; nothing where nothing
        has come for a while. Raises StoreUnavailable."""
        signal = ChangeSignal()
        self._followers.add(signal)
        try:
            if after is None:
                after = (await self._store.events(wanted, most=0)).newest
                yield Followed((), after)
            ends = False
            while not ends:
                await signal.wait(STILL_THERE)
                ends = self._closed
                page = await self._behind(wanted, after)
                yield page
                after = page.reaches
                if len(page.events) == PAGE:
                    signal.set()
        finally:
            self._followers.discard(signal)

    async def _behind(self, wanted: Wanted, after: int) -> Followed:
        page = await self._store.events(wanted, after=after, most=PAGE)
        misses = None if page.forgotten <= after <= page.newest else after
        if after > page.newest:  # of another store, or of what this one was before its backup
            page = await self._store.events(wanted, after=page.forgotten, most=PAGE)
        full = len(page.events) == PAGE
        return Followed(page.events, page.events[-1].id if full else page.newest, misses)

    def close(self) -> None:
        """Sends everybody away who follows: the head ends."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        for signal in self._followers:
            signal.set()

    def _note(self) -> None:
        if len(self._views) == MOST_VIEWS:
            self._views.pop()
        self._views.append((self._clock.now(), self._cluster.view()))
        self._changed.set()

    async def _news(self) -> list[Event]:
        events: list[Event] = []
        while self._views:
            at, view = self._views.popleft()
            events += happened(self._told, view, at)
            self._told = view
        if any(event.kind in LEARNED_AGAIN for event in events):
            known = await self._known()
            return [each for each in events if not _is_known(each, known)]
        return events

    async def _known(self) -> dict[tuple[str, str], str]:
        """What the last head said last of what this one learns again."""
        if self._last_words is None:
            try:
                pages = [await self._store.events(Wanted(kind=kind)) for kind in LEARNED_AGAIN]
            except StoreUnavailable:
                return {}
            told = (each.event for page in pages for each in page.events)
            self._last_words = {(each.kind, each.name): each.reason for each in told}
        return self._last_words


def _is_known(event: Event, known: dict[tuple[str, str], str]) -> bool:
    """Whether it was said by the last head; asked once of each, as it is news the next time."""
    return known.pop((event.kind, event.name), None) == event.reason
