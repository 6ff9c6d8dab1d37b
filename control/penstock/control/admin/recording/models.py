"""What the admin API takes and gives of recordings."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StrictInt

from penstock.control.admin.fields import Text, one_of
from penstock.control.state.recording.recorded import RecordingStanding
from penstock.control.state.recording.recordings import Recording
from penstock.control.state.recording.spec import (
    ENDPOINTS,
    MOST_MIB,
    MOST_REQUESTS,
    RecordingSpec,
    RecordUntil,
)
from penstock.control.state.shadow.spec import Record, Sample, parsed_primary

Texts = Annotated[list[Text], Field(max_length=1000)]
USUAL = RecordUntil()
RECORDING, WAITING, ENDED = "recording", "waiting", "ended"


class RecordUntilModel(BaseModel):
    """When a recording ends by itself: at the earliest of these."""

    model_config = ConfigDict(extra="forbid")

    requests: Annotated[StrictInt, Field(ge=1, le=MOST_REQUESTS)] = USUAL.requests
    mib: Annotated[StrictInt, Field(ge=1, le=MOST_MIB, description="of requests together")] = (
        USUAL.mib
    )
    at: AwareDatetime | None = None


class RecordingSpecModel(BaseModel):
    """Whose requests are kept, how many of them, and in which form."""

    model_config = ConfigDict(extra="forbid")

    name: Text = Field(examples=["monday"])
    primary: Text = Field(
        description="deployment, or deployment:alias, whose requests are recorded",
        examples=["chat"],
    )
    share_permille: StrictInt = Field(
        100, description="of the requests, in thousandths", ge=1, le=1000
    )
    sample: Sample = Field(Sample.REQUEST, description="session: all of its requests, or none")
    tenants: Texts = Field(default_factory=list, description="empty: all that allow it")
    endpoints: Texts = Field(
        default_factory=list, description=f"empty: {', '.join(ENDPOINTS)}, which are all there are"
    )
    until: RecordUntilModel = Field(default_factory=RecordUntilModel)
    record: Record = Field(
        Record.REDACTED,
        description="redacted: without personal data and secrets; full: as clients sent them",
    )

    def to_spec(self) -> RecordingSpec:
        """The spec that this asks for; raises InvalidInput."""
        return RecordingSpec(
            name=self.name,
            primary=parsed_primary(self.primary),
            share_permille=self.share_permille,
            sample=self.sample,
            tenants=tuple(self.tenants),
            endpoints=tuple(self.endpoints),
            until=RecordUntil(**self.until.model_dump()),
            record=self.record,
        )


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
        spec = recording.spec
        stands = standing or RecordingStanding(recording.uid, 0, 0, 0, 0, {})
        own: dict[str, Any] = {
            "primary": str(spec.primary),
            "state": ENDED if recording.ended else WAITING if message else RECORDING,
            "message": message,
            "created_at": recording.created_at,
        }
        return cls.model_validate({**asdict(spec), **stands._asdict(), **own})
