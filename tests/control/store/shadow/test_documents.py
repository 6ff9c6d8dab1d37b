"""A shadow is what it was after a restart of the head."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from penstock.control.state.shadow.shadows import Shadow
from penstock.control.state.shadow.spec import (
    CHECKS,
    Candidate,
    Primary,
    Record,
    Sample,
    ShadowSpec,
    Until,
)
from penstock.control.store.documents import SHADOWS
from tests.fakes.control_values import NOON

SPECS = st.builds(
    ShadowSpec,
    name=st.just("s"),
    primary=st.sampled_from([Primary("chat"), Primary("chat", "pirate")]),
    candidate=st.sampled_from([Candidate("chat"), Candidate("small", "pirate@1")]),
    share_permille=st.integers(1, 1000),
    sample=st.sampled_from(Sample),
    tenants=st.lists(st.sampled_from(["a", "b"]), unique=True).map(tuple),
    until=st.builds(
        Until, st.integers(0, 9), st.none() | st.just(datetime(2030, 1, 1, tzinfo=UTC))
    ),
    checks=st.lists(st.sampled_from(CHECKS), unique=True).map(tuple),
    margins=st.dictionaries(st.sampled_from(CHECKS), st.floats(0.001, 0.9)).map(
        lambda told: tuple(sorted(told.items()))
    ),
    guardrails=st.sampled_from([(), (("codename", "project [xy]"),)]),
    self_permille=st.none() | st.integers(0, 1000),
    usd_per_day=st.floats(0, 1000),
    record=st.sampled_from(Record),
    embedder=st.sampled_from(["", "embed"]),
    judge=st.sampled_from(["", "big"]),
)


@given(SPECS, st.booleans(), st.sampled_from(["", "500 pairs are counted"]))
def test_a_shadow_comes_back_as_it_was(spec: ShadowSpec, paused: bool, ended: str) -> None:
    shadow = Shadow(spec, "u", 2**63 - 1, NOON, paused=paused, ended=ended)
    assert SHADOWS.value(json.loads(json.dumps(SHADOWS.document(shadow)))) == shadow
