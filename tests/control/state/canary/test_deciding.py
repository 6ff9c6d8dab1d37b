"""What becomes of a canary: on what it goes on, what holds it, and what takes it back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.control.state.canary.canary import ENDED, Canary, CanaryState
from penstock.control.state.canary.deciding import decided
from penstock.control.state.canary.facts import Facts, Rollout
from penstock.control.state.canary.guards import Finding, Verdict
from tests.fakes.canary_values import canary, counted, finding
from tests.fakes.control_values import NOON

LATER = NOON + timedelta(seconds=60)
SHARED = canary(weighted=True, routed_at=NOON)
LAST = replace(SHARED, step=2)
FINE, WORSE, OPEN = finding(), finding(Verdict.WORSE), finding(Verdict.UNDECIDED)


def after(
    before: Canary,
    found: Sequence[Finding] = (FINE,),
    *,
    stable: int = 90,
    candidate: int = 10,
    **said: Any,
) -> Canary:
    facts = Facts(**{"now": LATER, **said})
    return decided(before, counted(stable, candidate, before.shared_step), found, facts)


def test_a_share_comes_once_its_replicas_are_ready() -> None:
    waits = after(canary(), wanted=3, ready=2)
    assert (waits.state, waits.permille) == (CanaryState.HELD, 0)
    assert waits.why == "100 permille of mini want 3 ready replicas of next, there are 2"
    comes = after(waits, wanted=3, ready=3)
    assert (comes.state, comes.permille, comes.routed_at) == (CanaryState.RUNNING, 100, None)


def test_time_counts_from_when_every_gateway_shares() -> None:
    spreading = replace(SHARED, routed_at=None)
    late = after(spreading, behind=("g1",))
    assert (late.routed_at, late.state) == (None, CanaryState.RUNNING)
    assert "g1 do not route by step 1 yet" in late.why
    there = after(late)
    assert (there.routed_at, there.step) == (LATER, 1)
    assert there.why == "it stands until 12:02:00 at least"


def test_what_is_equal_goes_on_and_says_on_what() -> None:
    on = after(SHARED)
    assert (on.step, on.weighted, on.permille, on.shared_step) == (2, False, 100, 1)
    assert on.why.startswith("step 1 (100 permille) is passed: errors equal: 2 % of 100 sessions")
    ((passed),) = on.passed
    assert (passed.step, passed.permille, passed.at) == (1, 100, LATER)
    assert after(after(on, wanted=1)).permille == 1000


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"candidate": 9}, "the candidate arm has 9 of 10 sessions"),
        ({"stable": 0}, "the stable arm has 0 of 10 sessions"),
        ({"stable": 0, "candidate": 0}, "the candidate arm has 0 of 10 sessions"),
        ({"found": ()}, "no guard has anything to judge"),
        ({"found": (FINE, OPEN)}, "errors: undecided"),
        ({"silent": ("gateway g1 does not report",)}, "gateway g1 does not report"),
        ({"behind": ("g1",)}, "g1 do not route by step 1 yet"),
        ({"wanted": 2}, "100 permille of mini want 2 ready replicas of next, there are 1"),
        ({"gone": "there is no deployment 'next' any more"}, "there is no deployment 'next'"),
    ],
)
def test_what_is_not_known_holds_it(said: dict[str, Any], words: str) -> None:
    held = after(SHARED, **said)
    assert (held.state, held.step) == (CanaryState.HELD, 1)
    assert words in held.why
    assert after(held).step == 2


def test_it_is_not_held_by_what_time_brings_before_that_is_over() -> None:
    soon = after(SHARED, (OPEN,), now=NOON, candidate=3)
    assert (soon.state, soon.step) == (CanaryState.RUNNING, 1)
    assert "the candidate arm has 3 of 10 sessions" in soon.why


@pytest.mark.parametrize("state", [CanaryState.RUNNING, CanaryState.HELD, CanaryState.PAUSED])
@pytest.mark.parametrize("way", [{}, {"weighted": False, "step": 2}, {"promoting": True}])
@pytest.mark.parametrize("silent", [(), ("gateway g1 does not report",)])
def test_what_is_worse_goes_back_from_wherever_it_is(
    state: CanaryState, way: dict[str, Any], silent: tuple[str, ...]
) -> None:
    back = after(replace(SHARED, state=state, **way), (FINE, WORSE), silent=silent, candidate=1)
    assert (back.state, back.permille, back.promoting) == (CanaryState.ROLLED_BACK, 0, False)
    assert back.why == "errors worse: 2 % of 100 sessions, against 0.1 % of 900"
    assert back.ended_at == LATER


@pytest.mark.parametrize(
    ("verdict", "state", "step"),
    [
        ("worse", CanaryState.ROLLED_BACK, 1),
        ("undecided", CanaryState.HELD, 1),
        ("equal", CanaryState.RUNNING, 2),
        ("better", CanaryState.RUNNING, 2),
    ],
)
def test_a_shadow_has_its_say(verdict: str, state: CanaryState, step: int) -> None:
    named = canary(shadow="ab", weighted=True, routed_at=NOON)
    found = after(named, shadow=verdict)
    assert (found.state, found.step) == (state, step)
    assert verdict == "equal" or verdict == "better" or "shadow ab" in found.why


def test_one_that_is_paused_stays_whatever_it_has_and_goes_on_from_there() -> None:
    paused = replace(SHARED, state=CanaryState.PAUSED, routed_at=None)
    stays = after(paused)
    assert stays == replace(paused, routed_at=LATER)
    assert after(replace(canary(), state=CanaryState.PAUSED)).weighted is False
    assert after(replace(stays, state=CanaryState.RUNNING, routed_at=NOON)).step == 2


def test_everybody_may_have_the_candidate_without_anybody_in_the_stable_arm() -> None:
    assert after(LAST, stable=0).promoting
    assert not after(LAST, stable=0, candidate=9).promoting


PROMOTING = replace(LAST, promoting=True, revision=7)


@pytest.mark.parametrize(
    ("rollout", "state", "words"),
    [
        (Rollout.UNDER_WAY, CanaryState.RUNNING, "revision 7 of mini is rolled out"),
        (Rollout.SERVED, CanaryState.PROMOTED, "revision 7 of mini serves"),
        (Rollout.FAILED, CanaryState.HELD, "revision 7 of mini failed: no room: promote again"),
    ],
)
def test_a_promotion_follows_the_rollout_of_its_target(
    rollout: Rollout, state: CanaryState, words: str
) -> None:
    found = after(PROMOTING, stable=0, rollout=rollout, rollout_cause="no room")
    assert found.state is state
    assert found.why.startswith(words)
    assert (found.permille, found.promoting) == ((0, False) if state in ENDED else (1000, True))


def test_a_revision_that_fails_by_itself_takes_its_canary_back() -> None:
    judged = replace(SHARED, candidate="revision 7", candidate_digest="d", revision=7)
    back = after(judged, rollout=Rollout.FAILED, rollout_cause="r9 ended 3 times")
    assert (back.state, back.why) == (
        CanaryState.ROLLED_BACK,
        "revision 7 failed: r9 ended 3 times",
    )


@pytest.mark.parametrize("state", [*sorted(ENDED), CanaryState.WAITING])
def test_what_is_over_or_waits_is_moved_by_nothing(state: CanaryState) -> None:
    over = replace(SHARED, state=state)
    assert after(over, (WORSE,), gone="x", shadow="worse") is over


def test_a_second_that_says_nothing_new_changes_nothing() -> None:
    held = after(SHARED, candidate=9)
    assert after(held, candidate=9, now=LATER + timedelta(hours=1)) == held
