"""A recording is what it was after a restart of the head."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from penstock.control.state.recording.recordings import Recording
from penstock.control.state.recording.spec import ENDPOINTS, KEPT, RecordingSpec, RecordUntil
from penstock.control.state.shadow.spec import Primary, Sample
from penstock.control.store.documents import RECORDINGS
from tests.fakes.control_values import NOON

SPECS = st.builds(
    RecordingSpec,
    name=st.just("r"),
    primary=st.sampled_from([Primary("chat"), Primary("chat", "pirate")]),
    share_permille=st.integers(1, 1000),
    sample=st.sampled_from(Sample),
    tenants=st.lists(st.sampled_from(["a", "b"]), unique=True).map(tuple),
    endpoints=st.lists(st.sampled_from(ENDPOINTS), unique=True).map(tuple),
    until=st.builds(
        RecordUntil,
        st.integers(1, 9),
        st.integers(1, 9),
        st.none() | st.just(datetime(2030, 1, 1, tzinfo=UTC)),
    ),
    record=st.sampled_from(KEPT),
)


@given(SPECS, st.sampled_from(["", "somebody stopped it"]))
def test_a_recording_comes_back_as_it_was(spec: RecordingSpec, ended: str) -> None:
    recording = Recording(spec, "u", 2**63 - 1, NOON, ended=ended)
    assert RECORDINGS.value(json.loads(json.dumps(RECORDINGS.document(recording)))) == recording
