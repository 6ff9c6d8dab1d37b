"""How reports of deaths become one picture."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.control.state.suspects import (
    SAME_DEATH_MS,
    EngineDeath,
    Suspect,
    merged,
    released,
    remaining,
)


def suspect(*deaths: tuple[str, int], until: int = 600_000, key: bytes = b"k") -> Suspect:
    made = tuple(EngineDeath(replica_id, at_ms, "g") for replica_id, at_ms in deaths)
    return Suspect(key, "mini", "u1", "/v1/completions", made, until)


def test_two_reports_of_one_death_are_one_death() -> None:
    one = merged({}, [suspect(("r1", 1_000))])
    both = merged(one, [suspect(("r1", 1_000 + SAME_DEATH_MS))])
    assert not both[b"k"].is_quarantined


def test_a_second_death_quarantines() -> None:
    one = merged({}, [suspect(("r1", 1_000), until=10)])
    for second in (("r2", 1_500), ("r1", 1_001 + SAME_DEATH_MS)):
        two = merged(one, [suspect(second, until=99)])
        assert two[b"k"].is_quarantined
        assert two[b"k"].until_ms == 99


def test_a_report_that_tells_nothing_new_changes_nothing() -> None:
    known = merged({}, [suspect(("r1", 1_000), ("r2", 1_000))])
    assert merged(known, [suspect(("r1", 1_000))]) is known
    assert merged(known, []) is known


def test_suspects_are_forgotten_by_time_or_by_release() -> None:
    known = merged({}, [suspect(("r1", 1), until=5), suspect(("r1", 1), until=9, key=b"l")])
    assert remaining(known, 4) is known
    assert list(remaining(known, 5)) == [b"l"]
    assert list(released(known, b"l")) == [b"k"]


@given(
    st.lists(
        st.tuples(st.sampled_from(["r1", "r2"]), st.integers(0, 30_000)), min_size=1, max_size=6
    )
)
def test_one_report_or_many_no_death_is_counted_twice(deaths: list[tuple[str, int]]) -> None:
    known = merged({}, [suspect(*deaths)])
    again = merged(known, [suspect(death) for death in deaths])
    assert again == known
    kept = known[b"k"].deaths
    for one in kept:
        same = [d for d in kept if d.replica_id == one.replica_id]
        assert all(d is one or abs(d.at_ms - one.at_ms) > SAME_DEATH_MS for d in same)
