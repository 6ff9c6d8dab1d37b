"""Tells what happens: follows the view, has events stored, and wakes those who follow them.

Whoever decides waits for nobody here. A store that fails, or is slow for long, costs events: they
are counted, and what decides goes on.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol

from penstock.control.errors import StoreUnavailable, Unavailable
from penstock.control.managers.changes import ChangeSignal
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.state.cluster import ClusterView
from penstock.control.state.events import Event, EventKind, KeptEvent, Reason, Wanted
from penstock.control.state.happened import happened, what_is_told
from penstock.control.store.events import EventStore
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

WRITE_EVERY: Final = timedelta(seconds=1)
MOST_VIEWS: Final = 256  # that wait to be told of: beyond, steps in between go unseen
PAGE: Final = 500  # events that a follower is given at a time
STILL_THERE: Final = timedelta(seconds=10)  # a follower is told something at least so often
MOST_FOLLOWERS: Final = 100
# No store remembers how these are: a new head learns it again, which is no news.
LEARNED_AGAIN: Final = (EventKind.NODE, EventKind.GATEWAY, EventKind.QUARANTINE)
HERE: Final = 2
# Each says how it is, from there to gone: who is lost was silent before.
STANDING: Final[Mapping[str, int]] = {
    **dict.fromkeys((Reason.NODE_JOINED, Reason.NODE_BACK, Reason.GATEWAY_CONNECTED), HERE),
    Reason.REQUEST_QUARANTINED: HERE,
    Reason.NODE_SILENT: 1,
    **dict.fromkeys((Reason.NODE_LOST, Reason.GATEWAY_LOST, Reason.GATEWAY_STOPPED), 0),
    Reason.REQUEST_RELEASED: 0,
}
_Of = tuple[str, str]  # kind and name


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
        self._remembered: dict[_Of, int] = dict.fromkeys(
            ((EventKind.NODE, name) for name in self._told.nodes), HERE
        )
        self._standing: dict[_Of, int] | None = None  # as the last head told it; None: unread
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
        has come for a while. Raises Unavailable."""
        if len(self._followers) >= MOST_FOLLOWERS:
            raise Unavailable(f"{MOST_FOLLOWERS} follow events already: ask again later")
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

    async def _known(self) -> dict[_Of, int]:
        """How the last head said that what this one learns again was."""
        if self._standing is None:
            try:
                pages = [await self._store.events(Wanted(kind=kind)) for kind in LEARNED_AGAIN]
            except StoreUnavailable:
                return {}
            self._standing = {**self._remembered}
            for event in (each.event for page in pages for each in page.events):
                if event.reason in STANDING:
                    self._standing[event.kind, event.name] = STANDING[event.reason]
        return self._standing


def _is_known(event: Event, known: dict[_Of, int]) -> bool:
    """Whether it is as the last head said; from the first that is otherwise, all is news."""
    now, of = STANDING.get(event.reason), (event.kind, event.name)
    was = known.get(of)
    if now is None or was is None:
        return False
    if (now == HERE) == (was == HERE) and was <= now:
        return True
    del known[of]
    return False
