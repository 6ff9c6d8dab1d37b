"""Counts of canaries add up, and of two readings of one process the later counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.control.state.canary.counts import ArmCounts, Counts

rows = st.dictionaries(st.integers(0, 255), st.integers(1, 9), max_size=4).map(
    lambda found: tuple(sorted(found.items()))
)
tallies = st.dictionaries(st.sampled_from("abc"), st.integers(1, 9), max_size=3).map(
    lambda found: tuple(sorted(found.items()))
)
arms = st.builds(
    ArmCounts,
    sessions=st.integers(0, 99),
    bad_sessions=st.integers(0, 99),
    errors=tallies,
    ttft=rows,
    total=rows,
    finishes=tallies,
    saved=st.integers(0, 9),
)
counts = st.builds(Counts, arms, arms)


@given(counts, counts, counts)
def test_in_whatever_order_gateways_are_added_up_it_is_the_same(
    one: Counts, other: Counts, third: Counts
) -> None:
    assert one.plus(other) == other.plus(one)
    assert one.plus(other).plus(third) == one.plus(other.plus(third))
    assert one.plus(Counts()) == one


@given(counts, counts)
def test_a_late_report_of_a_process_takes_nothing_back(one: Counts, grown: Counts) -> None:
    now = one.plus(grown)
    assert now.highest(one) == one.highest(now) == now
