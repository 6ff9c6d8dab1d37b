"""Canaries and what was counted of them survive a restart of the head; one that cannot be read
costs nobody else anything."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.state.canary.canary import (
    Canary,
    CanaryState,
    Counted,
    Edge,
    PassedStep,
    canaries_of,
)
from penstock.control.state.canary.counts import BINS, ArmCounts, Counts, Reading
from penstock.control.state.cluster import ClusterView
from penstock.control.store.documents import changes_between, view_of
from penstock.control.store.store import Contents, Key, Stored
from tests.fakes.canary_values import CANARY_UID, canary
from tests.fakes.control_values import NOON

COUNT = st.integers(0, 2**53)
BIN_ROWS = st.dictionaries(st.integers(0, BINS - 1), COUNT, max_size=5)
WORDS = st.dictionaries(st.text(max_size=9), COUNT, max_size=3)
ROWS, TALLIES = (each.map(lambda row: tuple(sorted(row.items()))) for each in (BIN_ROWS, WORDS))
ARMS = st.builds(
    ArmCounts,
    sessions=COUNT,
    bad_sessions=COUNT,
    saved_sessions=COUNT,
    errors=TALLIES,
    finishes=TALLIES,
    ttft=ROWS,
    between_tokens=ROWS,
    total=ROWS,
)
READINGS = st.builds(
    Reading, st.text(max_size=5), st.text(max_size=5), st.just(NOON), st.builds(Counts, ARMS, ARMS)
)
EDGES = st.builds(Edge, st.sampled_from(["ttft_p50", "total_p90"]), st.integers(0, BINS - 1))


def stored(view: ClusterView, **spoilt: Any) -> Contents:
    """The view's documents as JSON has them; of one kind another field."""
    documents = {}
    for change in changes_between(ClusterView(), view):
        said = json.loads(json.dumps(change.document))
        documents[change.key] = Stored({**said, **spoilt.get(change.key.kind, {})}, 1)
    return Contents(1, MappingProxyType(documents))


def view(one: Canary, counted: Counted | None = None) -> ClusterView:
    return ClusterView(canaries=canaries_of([one], [counted] if counted else []))


@given(st.lists(READINGS, max_size=3), st.lists(EDGES, max_size=2), st.integers(0, 3))
def test_what_was_counted_is_read_as_it_was_written(
    readings: list[Reading], edges: list[Edge], step: int
) -> None:
    counted = Counted(CANARY_UID, step, tuple(readings), tuple(edges))
    known = view(canary(), counted)
    restored = view_of(stored(known), NOON)
    assert restored.unreadable == ()
    assert restored.canaries == known.canaries
    assert not list(changes_between(known, restored))


WAYS = (
    {"state": CanaryState.PAUSED, "routed_at": NOON, "weighted": True},
    {"promoting": True, "step": 2, "revision": 7},
    {"candidate": "revision 2", "candidate_digest": "d" * 64, "revision": 2},
    {"state": CanaryState.ROLLED_BACK, "why": "errors worse", "ended_at": NOON},
    {"passed": (PassedStep(1, 100, NOON, (("errors", "equal"),)),), "step": 2},
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("of", [("mini", "next"), ("mini:sea", "a@2"), ("mini", "")])
def test_a_canary_is_known_to_the_next_head_as_it_stood(
    of: tuple[str, str], way: dict[str, Any]
) -> None:
    one = replace(canary(*of), **way)
    restored = view_of(stored(view(one)), NOON)
    assert restored.canaries.named == {"try": one}
    assert restored.canaries.shared == view(one).canaries.shared


def test_no_step_began_in_times_to_come_where_the_clock_was_set_back() -> None:
    ahead = canary(weighted=True, routed_at=NOON + timedelta(hours=1))
    assert view_of(stored(view(ahead)), NOON).canaries.canary("try").routed_at == NOON


@pytest.mark.parametrize(("kind", "name"), [("canary", "try"), ("canary_counts", CANARY_UID)])
def test_what_cannot_be_read_is_named_and_its_share_is_nobodys(kind: str, name: str) -> None:
    known = view(canary(weighted=True), Counted(CANARY_UID, 1))
    restored = view_of(stored(known, **{kind: {"step": "many"}}), NOON)
    ((said),) = restored.unreadable
    assert said.startswith(f"{kind} {name!r}: ")
    assert bool(restored.canaries.shared) is (kind != "canary")
    assert not restored.canaries.counted


def test_counts_of_a_run_that_another_has_followed_are_forgotten() -> None:
    known = view(canary(), Counted(CANARY_UID, 1))
    again = replace(known, canaries=known.canaries.having(replace(canary(), uid="c2")))
    (gone,) = [c for c in changes_between(known, again) if c.key.kind == "canary_counts"]
    assert (gone.key, gone.document) == (Key("canary_counts", CANARY_UID), None)
