"""What the admin API takes and gives of recordings."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from pydantic import Field

from penstock.control.admin.derived import Derived, derived
from penstock.control.admin.fields import one_of
from penstock.control.declared.codec import Codec
from penstock.control.declared.fields import flat
from penstock.control.state.recording.recorded import RecordingStanding
from penstock.control.state.recording.recordings import Recording
from penstock.control.state.recording.spec import RecordingSpec, RecordUntil

SPECS = Codec(RecordingSpec)
RECORDING, WAITING, ENDED = "recording", "waiting", "ended"


@derived(RecordUntil)
class RecordUntilModel(Derived):
    """When a recording ends by itself: at the earliest of these."""


@derived(RecordingSpec, until=(RecordUntilModel, Field(default_factory=lambda: RecordUntilModel())))
class RecordingSpecModel(Derived):
    """Whose requests are kept, how many of them, and in which form."""

    def to_spec(self) -> RecordingSpec:
        """The spec that this asks for; raises InvalidInput."""
        said = self.model_dump()
        return SPECS.value(said | {f"until_{key}": each for key, each in said["until"].items()})


class RecordingModel(RecordingSpecModel):
    """A recording: what it says, and how it stands."""

    uid: str = Field(description="tells it from deleted namesakes")
    state: str = one_of(RECORDING, WAITING, ENDED)
    message: str = Field(description="why it waits, or has ended; empty: it does neither")
    requests: int = Field(description="that were recorded")
    bytes: int = Field(description="that they had")
    kept: int = Field(description="requests that are there yet: the oldest of all go first")
    unreadable: int = Field(description="of these, under a key that is not there")
    left_out: dict[str, int] = Field(description="requests that were not recorded, by why")
    created_at: datetime

    @classmethod
    def of(cls, recording: Recording, message: str, standing: RecordingStanding | None) -> Self:
        """A recording as the API shows it."""
        stands = standing or RecordingStanding(recording.uid, 0, 0, 0, 0, {})
        state = ENDED if recording.ended else WAITING if message else RECORDING
        told = {**stands._asdict(), "until": flat(recording.spec.until)}
        return cls.showing(recording, state=state, message=message, **told)
