"""A recording ends when it has what it was to have, and says why."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.recording.recordings import RecordingLimits
from penstock.control.state.recording.recorded import RecordingStanding
from penstock.control.state.recording.recordings import Recording
from penstock.control.state.recording.spec import RecordingSpec, RecordUntil
from penstock.control.state.shadow.spec import Primary
from penstock.control.store.store import Author
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import NOON

UNTIL = RecordUntil(requests=500, mib=2, at=NOON + timedelta(hours=1))
RECORDING = Recording(RecordingSpec("r", Primary("chat"), until=UNTIL), "u1", 7, NOON)


@pytest.mark.parametrize(
    ("requests", "size", "hours", "why"),
    [
        (499, 2 << 20, 0, "2 MiB are recorded"),
        (500, 9, 0, "500 requests are recorded"),
        (0, 0, 2, "it is past 2026-01-02T13:00:00+00:00"),
        (499, 9, 0, ""),
    ],
)
async def test_it_ends_at_the_first_of_its_bounds(
    requests: int, size: int, hours: int, why: str
) -> None:
    clock = ManualClock()
    cluster = ClusterStore(MemoryStore(), clock)
    await cluster.apply(
        lambda view: replace(view, recordings=view.recordings.with_new(RECORDING)),
        Author("test", "start"),
    )
    standing = RecordingStanding("u1", requests, size, requests, 0, {})
    limits = RecordingLimits(cluster, lambda uid: standing, clock)
    clock.advance(timedelta(hours=hours))
    await limits.judge()
    assert cluster.view().recordings.recording("r").ended == why
