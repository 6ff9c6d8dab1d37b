"""How reports of deaths and answers become one picture."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from penstock.control.state.routing.suspects import (
    QUARANTINED_AT,
    SAME_DEATH_MS,
    TOGETHER_MS,
    EngineDeath,
    EngineEnd,
    Suspect,
    merged,
    released,
    remaining,
)


def suspect(
    *deaths: tuple[str, int],
    until: int = 600_000,
    key: bytes = b"k",
    end: EngineEnd = EngineEnd.CRASHED,
    answered: int = 0,
) -> Suspect:
    made = tuple(EngineDeath(replica_id, at_ms, "g", end) for replica_id, at_ms in deaths)
    return Suspect(key, "mini", "u1", "/v1/completions", made, until, answered)


def test_two_reports_of_one_death_are_one_death() -> None:
    one = merged({}, [suspect(("r1", 1_000))])
    both = merged(one, [suspect(("r1", 1_000 + SAME_DEATH_MS))])
    assert not both[b"k"].is_quarantined


def test_a_second_crash_quarantines() -> None:
    one = merged({}, [suspect(("r1", 1_000), until=10)])
    for second in (("r2", 1_500), ("r1", 1_001 + SAME_DEATH_MS)):
        two = merged(one, [suspect(second, until=99)])
        assert two[b"k"].is_quarantined
        assert two[b"k"].until_ms == 99


def test_kills_hangs_and_lost_replicas_quarantine_only_from_the_fourth_on() -> None:
    known = merged({}, [])
    for n, end in enumerate((EngineEnd.KILLED, EngineEnd.HUNG, EngineEnd.LOST, EngineEnd.KILLED)):
        assert not known or not known[b"k"].is_quarantined
        known = merged(known, [suspect(("r1", 60_000 * n + 1), end=end)])
    assert known[b"k"].is_quarantined


def test_what_is_more_than_ten_minutes_apart_is_chance() -> None:
    known = merged({}, [suspect(("r1", 1), ("r2", 2 + TOGETHER_MS))])
    assert not known[b"k"].is_quarantined


def test_a_death_that_two_suspects_shared_proves_nothing_against_either() -> None:
    known = merged({}, [suspect(("r1", 1_000), key=key) for key in (b"k", b"l")])
    known = merged(known, [suspect(("r2", 60_000), key=b"k")])
    assert known[b"k"].is_quarantined, "nobody knows yet of the other, at another gateway"
    known = merged(known, [suspect(("r2", 61_000), key=key) for key in (b"l", b"stranger")])
    assert not any(s.is_quarantined for s in known.values())
    assert [d.shared for d in known[b"k"].deaths] == [False, True]
    known = merged(known, [suspect(("r3", 120_000), key=b"k")])
    assert [f for f, s in known.items() if s.is_quarantined] == [b"k"], "alone this time"


def test_that_a_gateway_saw_another_suspect_aboard_is_kept() -> None:
    first = merged({}, [suspect(("r1", 1_000)), suspect(("r2", 60_000))])
    shared = EngineDeath("r2", 60_000, "g", shared=True)
    told = Suspect(b"k", "mini", "u1", "/v1/completions", (shared,), 600_000)
    assert not merged(first, [told])[b"k"].is_quarantined


def test_an_answer_takes_away_what_was_before_it_whoever_tells_of_that_later() -> None:
    known = merged({}, [suspect(("r1", 1_000), ("r2", 30_000))])
    known = merged(known, [suspect(answered=40_000)])
    assert not known[b"k"].deaths
    assert known[b"k"].answered_ms == 40_000
    known = merged(known, [suspect(("r3", 39_000))])
    assert not known[b"k"].deaths, "seen before the answer, told after it"
    known = merged(known, [suspect(("r3", 80_000))])
    assert len(known[b"k"].deaths) == 1
    assert not known[b"k"].is_quarantined


def test_a_report_that_tells_nothing_new_changes_nothing() -> None:
    known = merged({}, [suspect(("r1", 1_000), ("r2", 1_000))])
    assert merged(known, [suspect(("r1", 1_000))]) is known
    assert merged(known, []) is known
    known = merged(known, [suspect(answered=5_000)])
    assert merged(known, [suspect(answered=4_000)]) is known


def test_suspects_are_forgotten_by_time_or_by_release() -> None:
    known = merged({}, [suspect(("r1", 1), until=5), suspect(("r1", 1), until=9, key=b"l")])
    assert remaining(known, 4) is known
    assert list(remaining(known, 5)) == [b"l"]
    assert list(released(known, b"l")) == [b"k"]


DEATHS = st.tuples(st.sampled_from(["r1", "r2"]), st.integers(1, 30_000))


@given(st.lists(DEATHS, min_size=1, max_size=6))
def test_one_report_or_many_no_death_is_counted_twice(deaths: list[tuple[str, int]]) -> None:
    known = merged({}, [suspect(*deaths)])
    again = merged(known, [suspect(death) for death in deaths])
    assert again == known
    kept = known[b"k"].deaths
    for one in kept:
        same = [d for d in kept if d.replica_id == one.replica_id]
        assert all(d is one or abs(d.at_ms - one.at_ms) > SAME_DEATH_MS for d in same)


# What gateways tell of three requests: which, on which replica, how it ended; None: an answer.
NEWS = st.tuples(
    st.sampled_from([b"a", b"b", b"c"]),
    st.sampled_from(["r1", "r2"]),
    st.one_of(st.none(), st.sampled_from(EngineEnd)),
)


@given(st.lists(NEWS, max_size=12))
def test_whatever_happens_blame_needs_proof(
    history: list[tuple[bytes, str, EngineEnd | None]],
) -> None:
    known = merged({}, [])
    since_answer: dict[bytes, list[EngineEnd]] = {}
    for at, (key, replica, end) in zip(itertools.count(20_000, 20_000), history, strict=False):
        ends = since_answer.setdefault(key, [])
        if end is None:
            ends.clear()
            known = merged(known, [suspect(key=key, answered=at)])
            assert not known[key].points
        else:
            ends.append(end)
            known = merged(known, [suspect((replica, at), key=key, end=end)])
        for each, seen in since_answer.items():
            assert known[each].points == sum(e.points for e in seen), "each was alone"
            assert known[each].is_quarantined == (known[each].points >= QUARANTINED_AT)
