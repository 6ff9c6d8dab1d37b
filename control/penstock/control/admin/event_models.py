"""What happened, as the API shows it."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from penstock.control.admin.derived import Shown
from penstock.control.admin.fields import one_of
from penstock.control.state.events import EventKind, EventType, KeptEvent, Reason


class EventModel(Shown):
    """One thing that happened, or happened again and again."""

    id: int = Field(description="grows; what happens again gets a new one")
    kind: str = one_of(*EventKind)
    name: str = Field(description="of what it happened to")
    deployment: str = Field(description="that it concerns; empty: none, or all")
    reason: str = one_of(*Reason)
    type: str = one_of(*EventType)
    text: str = Field(description="for a person: one sentence")
    count: int = Field(description="how many times it happened, each within an hour of the last")
    first_at: datetime
    last_at: datetime

    @classmethod
    def of(cls, kept: KeptEvent) -> EventModel:
        """An event as the API shows it."""
        return cls.drawn(kept, kept.event, last_at=kept.event.at)


class GapModel(Shown):
    """What a follower is told where events that it has not had are gone."""

    after: int = Field(description="the id that it asked behind")
    text: str = "events behind this id are kept no longer: what is kept follows"
