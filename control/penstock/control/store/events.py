"""The EventStore protocol: what happened, for a while."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from penstock.control.state.events import Event, EventPage, Wanted


class EventStore(Protocol):
    """Events that survive the death of the process: those of `KEPT_FOR`, `MOST_KEPT` at most."""

    async def keep_events(self, events: Sequence[Event]) -> None:
        """Adds them, all or nothing. One that says what another said within `REPEATS_WITHIN` takes
        its place, under an id of its own. Raises StoreUnavailable."""

    async def events(
        self, wanted: Wanted, *, after: int = 0, most: int | None = None, last: bool = False
    ) -> EventPage:
        """Those behind an id, `most` of them at most: the oldest, or the `last`. Raises
        StoreUnavailable."""
