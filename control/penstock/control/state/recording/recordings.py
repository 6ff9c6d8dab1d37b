"""All recordings at one moment. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

from penstock.control.declared.fields import said
from penstock.control.errors import Code, NotFound, PenstockError
from penstock.control.state.recording.recorded import RecordingStanding
from penstock.control.state.recording.spec import RecordingSpec

MOST_RECORDINGS: Final = 100
STOPPED: Final = "somebody stopped it"


@dataclass(frozen=True, slots=True)
class Recording:
    """A spec with its identity and history."""

    spec: RecordingSpec = field(metadata=said(inner=True))
    uid: str  # hex; tells it from deleted namesakes
    seed: int  # what is sampled follows from it
    created_at: datetime
    ended: str = ""  # why nothing more is recorded; empty: it goes on


@dataclass(frozen=True, slots=True)
class Recordings:
    """Part of the cluster view. Mappings are read-only."""

    named: Mapping[str, Recording] = field(default_factory=dict)

    def recording(self, name: str) -> Recording:
        """The recording of this name; raises `unknown-recording`."""
        if found := self.named.get(name):
            return found
        raise NotFound(
            f"no recording {name!r}: GET /admin/v1/recordings lists them", Code.UNKNOWN_RECORDING
        )

    def with_new(self, recording: Recording) -> Recordings:
        """With one more; raises `recording-exists` and `conflict`."""
        if recording.spec.name in self.named:
            raise PenstockError(
                f"recording {recording.spec.name!r} exists: delete it first", Code.RECORDING_EXISTS
            )
        if len(self.named) >= MOST_RECORDINGS:
            raise PenstockError(
                f"there are {MOST_RECORDINGS} recordings: delete those that nobody needs",
                Code.CONFLICT,
            )
        return self.having(recording)

    def having(self, recording: Recording) -> Recordings:
        """With this one in the place of its namesake."""
        named = {**self.named, recording.spec.name: recording}
        return replace(self, named=MappingProxyType(named))

    def without(self, name: str) -> Recordings:
        """With one less; raises `unknown-recording`."""
        self.recording(name)
        left = {each: found for each, found in self.named.items() if each != name}
        return replace(self, named=MappingProxyType(left))


def why_ended(recording: Recording, standing: RecordingStanding | None, now: datetime) -> str:
    """Why a recording is over; empty: it goes on."""
    until = recording.spec.until
    if until.at and until.at <= now:
        return f"it is past {until.at.isoformat()}"
    if standing and standing.requests >= until.requests:
        return f"{until.requests:,} requests are recorded"
    if standing and standing.bytes >= until.mib << 20:
        return f"{until.mib:,} MiB are recorded"
    return ""
