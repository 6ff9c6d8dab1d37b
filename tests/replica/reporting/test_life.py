"""The table of the replica's states."""

from __future__ import annotations

from itertools import permutations, product

from penstock.replica.reporting.life import Happening, State, after


def test_every_happening_has_its_consequence_in_every_state() -> None:
    for state, happening in product(State, Happening):
        assert after(state, happening) in State


def test_only_a_replica_that_nobody_drained_becomes_ready() -> None:
    assert after(State.STARTING, Happening.LOADED) is State.READY
    drained = after(State.STARTING, Happening.DRAIN)
    assert after(drained, Happening.LOADED) is State.DRAINING


def test_nothing_leads_back_but_a_wake() -> None:
    order = list(State)
    for state, happening in product(State, set(Happening) - {Happening.WAKE}):
        assert order.index(after(state, happening)) >= order.index(state)


def test_only_a_ready_one_falls_asleep_and_only_one_that_sleeps_wakes() -> None:
    assert [state for state in State if after(state, Happening.SLEEP) is State.ASLEEP] == [
        State.READY,
        State.ASLEEP,
    ]
    woken = {state for state in State if after(state, Happening.WAKE) is State.READY}
    assert woken == {State.READY, State.ASLEEP}


def test_a_drain_counts_whenever_it_comes() -> None:
    for happenings in permutations((Happening.LOADED, Happening.DRAIN)):
        state = State.STARTING
        for happening in happenings:
            state = after(state, happening)
        assert state is State.DRAINING
