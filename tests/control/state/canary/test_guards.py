"""What the guards of a canary say of counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.control.state.canary.canary import Edge
from penstock.control.state.canary.counts import ArmCounts, Bins, Counts
from penstock.control.state.canary.guards import Finding, Verdict, edges_of, findings
from penstock.control.state.canary.spec import CanarySpec, Step, Target, TimeGuard

SPEC = CanarySpec("next", Target("chat"), "chat-next")
ONE_PERCENT, HALF, ALL = 1, 4, 5  # of the default steps


def arm(sessions: int, **more: Any) -> ArmCounts:
    """One of so many sessions, all answered but those that broke."""
    counts = ArmCounts(sessions=sessions, **more)
    return replace(counts, answered_sessions=sessions - counts.bad_sessions)


def found(stable: ArmCounts, candidate: ArmCounts, step: int = ONE_PERCENT) -> dict[str, Finding]:
    """Findings by guard."""
    counts = Counts(stable, candidate)
    return {each.guard: each for each in findings(SPEC, step, counts, edges_of((), counts))}


def row(count: int, *bins: int) -> Bins:
    """So many sessions, shared evenly over these bins."""
    return tuple((index, count // len(bins)) for index in sorted(bins))


def test_at_one_percent_the_second_failing_session_rolls_back() -> None:
    assert found(arm(99), arm(1, bad_sessions=1))["errors"].verdict is Verdict.UNDECIDED
    assert found(arm(198), arm(2, bad_sessions=2))["errors"].verdict is Verdict.WORSE


def test_an_outage_of_both_arms_blames_nobody() -> None:
    stable, candidate = arm(9_900, bad_sessions=4_950), arm(100, bad_sessions=50)
    assert found(stable, candidate)["errors"].verdict is not Verdict.WORSE


def test_a_few_clean_sessions_are_not_enough_to_go_on_and_it_says_how_many_are_missing() -> None:
    few = found(arm(4_950), arm(50))
    assert few["errors"].verdict is Verdict.UNDECIDED
    assert few["errors"].missing == "about 66 more sessions of the candidate"
    enough = found(arm(11_880), arm(120))
    assert {each.verdict for each in enough.values()} == {Verdict.EQUAL}


@pytest.mark.parametrize("step", range(1, 6))
def test_where_nothing_was_counted_nothing_is_said_to_be_good(step: int) -> None:
    assert {each.verdict for each in found(arm(0), arm(0), step).values()} == {Verdict.UNDECIDED}
    lonely = found(arm(100_000), arm(0), step)
    assert {each.verdict for each in lonely.values()} == {Verdict.UNDECIDED}


def test_a_share_beyond_the_margin_holds_though_nothing_is_proved_yet() -> None:
    ends = found(arm(30_000, bad_finishes=600), arm(300, bad_finishes=13))["finish"]
    assert ends.verdict is Verdict.UNDECIDED
    assert ends.missing == "its share is 2.3% above the stable arm's, the margin is 2.0%"


def test_endings_that_are_surely_worse_by_more_than_the_margin_roll_back() -> None:
    ends = found(arm(60_000, bad_finishes=1_200), arm(600, bad_finishes=48))["finish"]
    assert ends.verdict is Verdict.WORSE


def test_what_is_surely_worse_but_within_the_margin_does_not_roll_back() -> None:
    ends = found(arm(5_000_000, bad_finishes=100_000), arm(50_000, bad_finishes=1_500))["finish"]
    assert ends.evidence > ends.limit
    assert ends.verdict is Verdict.EQUAL


def test_a_candidate_that_breaks_less_is_better() -> None:
    errors = found(arm(9_000, bad_sessions=900), arm(9_000, bad_sessions=90), HALF)["errors"]
    assert errors.verdict is Verdict.BETTER


def test_a_candidate_half_as_slow_again_is_seen_by_its_times() -> None:
    stable = arm(9_900, total=row(9_900, *range(100, 110)))
    slow = arm(100, total=row(100, *range(105, 115)))  # five bins of an eighth of an octave
    verdicts = {name: each.verdict for name, each in found(stable, slow).items()}
    assert verdicts["total_p50"] is Verdict.WORSE
    assert verdicts["errors"] is not Verdict.WORSE


def test_times_that_hardly_any_session_has_are_not_judged() -> None:
    stable = arm(10_000, ttft=row(400, 100, 101))
    assert "ttft_p50" not in found(stable, arm(100))


def test_times_of_the_stable_arm_alone_hold() -> None:
    stable = arm(10_000, ttft=row(10_000, 100, 101))
    assert found(stable, arm(200))["ttft_p50"].verdict is Verdict.UNDECIDED


def test_edges_are_fixed_by_the_first_hundred_sessions_and_stay() -> None:
    few = Counts(arm(99, ttft=row(99, 100)), ArmCounts())
    assert edges_of((), few) == ()
    enough = Counts(arm(100, ttft=row(100, *range(100, 110))), ArmCounts())
    fixed = edges_of((), enough)
    assert fixed == (Edge("ttft_p50", 104), Edge("ttft_p90", 108))
    later = Counts(arm(900, ttft=row(900, 200)), ArmCounts())
    assert edges_of(fixed, later) == fixed


def test_a_stable_arm_that_takes_the_same_time_always_still_has_slower_sessions_beside_it() -> None:
    stable = arm(9_900, total=row(9_900, 100))
    assert found(stable, arm(100, total=row(100, 102)))["total_p50"].verdict is Verdict.WORSE
    assert found(stable, arm(200, total=row(200, 100)))["total_p50"].verdict is Verdict.EQUAL


def test_where_all_have_the_candidate_it_is_judged_by_what_the_stable_arm_had_to_answer() -> None:
    assert found(arm(0), arm(200), ALL)["errors"].verdict is Verdict.EQUAL
    outage = found(arm(0), arm(200, bad_sessions=150), ALL)["errors"]
    assert outage.verdict is Verdict.UNDECIDED
    assert outage.missing == "75.0% of its sessions broke, the margin is 1.0%"
    saved = arm(200, bad_sessions=20, saved_sessions=20)
    assert found(arm(0), saved, ALL)["errors"].verdict is Verdict.WORSE
    assert set(found(arm(0), saved, ALL)) == {"errors"}


def test_more_of_the_candidate_than_its_share_came_and_that_is_no_evidence() -> None:
    """Sessions that stay where they are may make an arm larger than its weight."""
    stable, candidate = arm(1_000, bad_sessions=10), arm(1_000, bad_sessions=10)
    assert found(stable, candidate)["errors"].verdict is not Verdict.WORSE


def test_a_guard_of_margin_one_has_nothing_against_anybody() -> None:
    guards = replace(SPEC.guards, total=TimeGuard(1.0))
    stable, slow = arm(9_900, total=row(9_900, 100)), arm(100, total=row(100, 200))
    counts = Counts(stable, slow)
    spec = replace(SPEC, guards=guards)
    found = {each.guard: each for each in findings(spec, 1, counts, edges_of((), counts))}
    assert found["total_p50"].verdict is Verdict.EQUAL
    nine = replace(SPEC, guards=replace(guards, total=TimeGuard(0.9)))
    found = {each.guard: each for each in findings(nine, 1, counts, edges_of((), counts))}
    assert found["total_p50"].verdict is Verdict.WORSE


def test_the_limits_share_the_error_rate_out_over_steps_and_guards() -> None:
    one = replace(SPEC, steps=(Step(10),))
    counts = Counts(arm(198), arm(2, bad_sessions=2))
    few, many = findings(one, 1, counts, ())[0], findings(SPEC, 1, counts, ())[0]
    assert few.limit < many.limit
    assert few.evidence == many.evidence
