"""Counts events, as the head's metrics do."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.control.state.events import Event


class EventCounts:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[Event] = []
        self.lost = 0

    def happened(self, events: Sequence[Event]) -> None:
        self.told += events

    def events_lost(self, count: int) -> None:
        self.lost += count
