"""Recordings to documents and back."""

from __future__ import annotations

from datetime import datetime

from penstock.control.state.recording.recordings import Recording
from penstock.control.state.recording.spec import RecordingSpec, RecordUntil
from penstock.control.state.shadow.spec import Record, Sample, parsed_primary
from penstock.control.store.store import Document


def from_recording(recording: Recording) -> Document:
    """A recording's document."""
    spec = recording.spec
    return {
        "name": spec.name,
        "primary": str(spec.primary),
        "share_permille": spec.share_permille,
        "sample": spec.sample.value,
        "tenants": list(spec.tenants),
        "endpoints": list(spec.endpoints),
        "until_requests": spec.until.requests,
        "until_mib": spec.until.mib,
        "until_at": spec.until.at and spec.until.at.isoformat(),
        "record": spec.record.value,
        "uid": recording.uid,
        "seed": recording.seed,
        "created_at": recording.created_at.isoformat(),
        "ended": recording.ended,
    }


def to_recording(document: Document) -> Recording:
    """The inverse of `from_recording`."""
    at = document["until_at"]
    spec = RecordingSpec(
        name=document["name"],
        primary=parsed_primary(document["primary"]),
        share_permille=document["share_permille"],
        sample=Sample(document["sample"]),
        tenants=tuple(document["tenants"]),
        endpoints=tuple(document["endpoints"]),
        until=RecordUntil(
            document["until_requests"],
            document["until_mib"],
            datetime.fromisoformat(at) if at else None,
        ),
        record=Record(document["record"]),
    )
    return Recording(
        spec,
        uid=document["uid"],
        seed=document["seed"],
        created_at=datetime.fromisoformat(document["created_at"]),
        ended=document["ended"],
    )
