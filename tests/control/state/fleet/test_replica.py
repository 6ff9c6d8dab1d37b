"""The lifecycle tables, and the one function that reads them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.errors import Code
from penstock.control.state.fleet.replica import (
    NODE_TRANSITIONS,
    REPLICA_TRANSITIONS,
    NodeState,
    ReplicaState,
    advance,
)
from tests.fakes.control_errors import raises_code
from tests.fakes.control_values import NOON, SECOND, node, replica


@pytest.mark.parametrize(
    ("table", "states"), [(REPLICA_TRANSITIONS, ReplicaState), (NODE_TRANSITIONS, NodeState)]
)
def test_every_state_stands_in_its_table(
    table: Mapping[ReplicaState, frozenset[ReplicaState]], states: type[ReplicaState]
) -> None:
    assert set(table) == set(states)


@given(st.sampled_from(ReplicaState), st.sampled_from(ReplicaState))
def test_a_step_is_taken_exactly_if_the_table_has_it(
    current: ReplicaState, to: ReplicaState
) -> None:
    if to == current or to in REPLICA_TRANSITIONS[current]:
        assert advance(REPLICA_TRANSITIONS, current, to) == to
    else:
        with raises_code(Code.IMPOSSIBLE_TRANSITION, match=f"{current} cannot become {to}"):
            advance(REPLICA_TRANSITIONS, current, to)


def test_nothing_comes_back_from_draining_but_by_a_sleep() -> None:
    after = {ReplicaState.ASLEEP, ReplicaState.LOST, ReplicaState.STOPPED}
    assert REPLICA_TRANSITIONS[ReplicaState.DRAINING] == after


def test_since_moves_only_with_the_state() -> None:
    later = NOON + SECOND
    assert replica().moved(ReplicaState.READY, later).since == NOON
    assert replica().moved(ReplicaState.BACKOFF, later).since == later
    assert node().moved(NodeState.SILENT, later).since == later
