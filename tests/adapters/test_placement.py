"""Adapters come to where they are wanted, as far as there is room."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.adapters.adapter import AdapterRef
from penstock.adapters.placement import Desired, Holder, Kept, Placement, place
from tests.adapters.examples import ref, refs

A, B, C = (ref(f"{name}@1") for name in "abc")


def holder(replica: str, holds: str = "", slots: int = 2, failed: str = "") -> Holder:
    return Holder(
        replica, slots, refs(f"{n}@1" for n in holds), failed=refs(f"{n}@1" for n in failed)
    )


def keeps(placement: Placement) -> dict[str, list[AdapterRef]]:
    return {
        replica: [kept.ref for kept in all_kept] for replica, all_kept in placement.keeps.items()
    }


def test_an_adapter_for_all_is_kept_by_all() -> None:
    done = place([Desired(A)], [holder("r1", "a"), holder("r2")])
    assert keeps(done) == {"r1": [A], "r2": [A]}
    assert done.unplaced == {}


def test_an_adapter_for_one_stays_where_it_is() -> None:
    done = place([Desired(A, 1)], [holder("r1"), holder("r2", "a")])
    assert keeps(done) == {"r1": [], "r2": [A]}


def test_an_adapter_for_one_goes_where_most_room_is() -> None:
    done = place([Desired(A), Desired(B, 1)], [holder("r1"), holder("r2", slots=3)])
    assert keeps(done) == {"r1": [A], "r2": [A, B]}


def test_what_finds_no_room_is_told() -> None:
    done = place([Desired(A), Desired(B), Desired(C)], [holder("r1"), holder("r2")])
    assert keeps(done) == {"r1": [A, B], "r2": [A, B]}
    assert done.unplaced == {C: 2}


def test_a_pinned_one_comes_before_those_that_were_named_first() -> None:
    done = place([Desired(A), Desired(B, pinned=True)], [holder("r1", "a", slots=1)])
    assert done == Placement({"r1": (Kept(B, pinned=True),)}, {A: 1})


def test_an_adapter_that_two_want_is_kept_as_often_as_the_greedier_says() -> None:
    done = place([Desired(A, 1), Desired(A, 2, pinned=True)], [holder("r1"), holder("r2")])
    assert done.keeps == dict.fromkeys(("r1", "r2"), (Kept(A, pinned=True),))


def test_where_a_load_failed_another_replica_is_tried() -> None:
    done = place([Desired(A, 1)], [holder("r1", failed="a"), holder("r2", "bc")])
    assert keeps(done) == {"r1": [], "r2": [A]}


def test_where_all_loads_failed_it_stays_wanted_where_it_was() -> None:
    """An order that changed with each failure would have it tried again and again."""
    done = place([Desired(A, 1)], [holder("r1", failed="a"), holder("r2", failed="a")])
    assert keeps(done) == {"r1": [A], "r2": []}
    assert keeps(place([Desired(A)], [holder("r1", failed="a")])) == {"r1": [A]}


def test_a_replica_without_slots_keeps_nothing() -> None:
    done = place([Desired(A)], [holder("r1", slots=0)])
    assert done == Placement({"r1": ()}, {A: 1})


def test_more_replicas_than_there_are_is_all_of_them() -> None:
    assert place([Desired(A, 5)], [holder("r1")]) == Placement({"r1": (Kept(A),)}, {})


def test_a_number_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="a@1 cannot be on -1 replicas"):
        Desired(A, -1)


some_refs = st.sampled_from([ref(f"{name}@1") for name in "abcdef"])
some_desired = st.lists(
    st.builds(Desired, some_refs, st.none() | st.integers(0, 4), st.booleans()), max_size=8
)
some_holders = st.lists(
    st.builds(
        Holder,
        st.sampled_from(["r1", "r2", "r3", "r4"]),
        st.integers(0, 4),
        st.frozensets(some_refs, max_size=4),
        st.frozensets(some_refs, max_size=2),
    ),
    max_size=4,
    unique_by=lambda each: each.replica,
)


@given(some_desired, some_holders)
def test_places_are_never_more_than_slots_and_missing_ones_are_told(
    desired: list[Desired], holders: list[Holder]
) -> None:
    done = place(desired, holders)
    for each in holders:
        kept = [one.ref for one in done.keeps[each.replica]]
        assert len(kept) == len(set(kept)) <= each.slots
    for want in desired:
        having = sum(want.ref in kept for kept in keeps(done).values())
        wanted = len(holders) if want.replicas is None else min(want.replicas, len(holders))
        assert having + done.unplaced.get(want.ref, 0) >= wanted


@given(some_desired, some_holders)
def test_what_was_placed_stays_placed(desired: list[Desired], holders: list[Holder]) -> None:
    first = place(desired, holders)
    settled = [
        Holder(h.replica, h.slots, frozenset(k.ref for k in first.keeps[h.replica]), h.failed)
        for h in holders
    ]
    again = place(desired, settled)
    assert {r: set(k) for r, k in again.keeps.items()} == {
        r: set(k) for r, k in first.keeps.items()
    }
