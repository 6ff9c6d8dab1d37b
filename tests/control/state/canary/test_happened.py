"""What is told of canaries."""

from __future__ import annotations

from dataclasses import replace

from penstock.control.state.canary.canary import Canaries, Canary, CanaryState, PassedStep
from penstock.control.state.cluster import ClusterView
from penstock.control.state.events import EventType
from penstock.control.state.happened import happened
from tests.fakes.canary_values import canary
from tests.fakes.control_values import NOON

RUNS = canary(state=CanaryState.RUNNING, weighted=True)


def having(known: Canary | None) -> ClusterView:
    return ClusterView(canaries=Canaries({known.spec.name: known} if known else {}))


def told(was: Canary | None, now: Canary) -> list[tuple[str, str]]:
    before, after = (
        ClusterView(canaries=Canaries({each.spec.name: each} if each else {}))
        for each in (was, now)
    )
    return [(event.reason, event.text) for event in happened(before, after, NOON)]


def test_a_start_names_both_arms_and_who_asked_for_it() -> None:
    by = replace(RUNS, by="alice", reason="cheaper")
    text = "canary try of mini starts: next beside mini, by alice: cheaper"
    assert told(None, by) == [("CanaryStarted", text)]
    waits = replace(RUNS, state=CanaryState.WAITING)
    assert told(None, waits) == []
    assert [reason for reason, _ in told(waits, by)] == ["CanaryStarted"]
    again = replace(by, uid="c2")
    assert [reason for reason, _ in told(by, again)] == ["CanaryAborted", "CanaryStarted"]
    over = replace(by, state=CanaryState.PROMOTED)
    assert [reason for reason, _ in told(over, again)] == ["CanaryStarted"]


def test_each_step_that_is_passed_is_told_with_its_figures() -> None:
    passed = PassedStep(1, 100, NOON, (("errors", "errors equal: 0 % of 90 sessions"),))
    further = replace(RUNS, step=2, weighted=False, passed=(passed,))
    text = "canary try passed 10 % of the sessions: errors equal: 0 % of 90 sessions"
    assert told(RUNS, further) == [("CanaryAdvanced", text)]


def test_a_hold_is_told_with_what_is_missing_and_again_where_something_else_is() -> None:
    held = replace(RUNS, state=CanaryState.HELD, why="it has 40 of 100 sessions")
    assert told(RUNS, held) == [
        ("CanaryHeld", "canary try is held at 10 %: it has 40 of 100 sessions")
    ]
    assert told(held, replace(held, why="it has 41 of 100 sessions")) == []
    silent = replace(held, why="gateway gw-1 does not report")
    assert [reason for reason, _ in told(held, silent)] == ["CanaryHeld"]
    assert told(held, replace(RUNS, why="it stands until 12:00:01")) == []


def test_what_operators_do_and_how_it_ends_is_told() -> None:
    paused = replace(RUNS, state=CanaryState.PAUSED)
    assert told(RUNS, paused) == [("CanaryPaused", "canary try is paused at 10 %")]
    assert told(paused, RUNS) == [("CanaryResumed", "canary try goes on at 10 %")]
    for state, reason, words in (
        (CanaryState.PROMOTED, "CanaryPromoted", "is promoted"),
        (CanaryState.ROLLED_BACK, "CanaryRolledBack", "is rolled back"),
        (CanaryState.ABORTED, "CanaryAborted", "is aborted"),
    ):
        over = replace(RUNS, state=state, why="errors worse", ended_at=NOON)
        assert told(RUNS, over) == [(reason, f"canary try {words}: errors worse")]


def test_a_rollback_is_a_warning_and_concerns_the_target() -> None:
    over = replace(RUNS, state=CanaryState.ROLLED_BACK)
    (event,) = happened(having(RUNS), having(over), NOON)
    assert (event.type, event.deployment) == (EventType.WARNING, "mini")
