"""What follows the end of a replica's process."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.supervision.restart_policy import (
    CANNOT_LOAD,
    Ending,
    GiveUp,
    RestartPolicy,
    StartAgain,
    after_end,
    describe,
)

POLICY = RestartPolicy()
AT_ONCE = timedelta(0)
exit_codes = st.one_of(st.none(), st.integers(-64, 255).filter(lambda code: code != CANNOT_LOAD))
durations = st.timedeltas(AT_ONCE, timedelta(days=30))


def again(earlier_failures: int, ending: Ending) -> StartAgain:
    decision = after_end(POLICY, earlier_failures, ending)
    assert isinstance(decision, StartAgain)
    return decision


def test_the_first_failure_waits_a_fifth_of_a_second() -> None:
    assert again(0, Ending(-9, AT_ONCE)).after == timedelta(milliseconds=200)


def test_pauses_double_until_the_longest() -> None:
    pauses = [again(failures, Ending(1, AT_ONCE)).after.total_seconds() for failures in range(10)]
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30]


def test_a_minute_of_health_forgives_what_was_before() -> None:
    decision = again(9, Ending(-9, timedelta(seconds=60)))
    assert decision == StartAgain(POLICY.first_delay, failures=1, crash_loop=False)


def test_the_fifth_failure_in_a_row_is_a_crash_loop() -> None:
    loops = [again(failures, Ending(70, AT_ONCE)).crash_loop for failures in range(6)]
    assert loops == [False, False, False, False, True, True]


@given(st.integers(0, 10_000), durations)
def test_a_replica_that_cannot_load_is_given_up(failures: int, ready_for: timedelta) -> None:
    assert after_end(POLICY, failures, Ending(CANNOT_LOAD, ready_for)) == GiveUp()


@given(st.integers(0, 10_000), exit_codes, durations)
def test_every_other_end_starts_again_within_bounds(
    failures: int, exit_code: int | None, ready_for: timedelta
) -> None:
    decision = again(failures, Ending(exit_code, ready_for))
    assert POLICY.first_delay <= decision.after <= POLICY.longest_delay
    assert 1 <= decision.failures <= failures + 1


@given(st.integers(0, 10_000), exit_codes)
def test_another_quick_death_never_shortens_the_pause(failures: int, code: int | None) -> None:
    ending = Ending(code, AT_ONCE)
    assert again(failures + 1, ending).after >= again(failures, ending).after


@pytest.mark.parametrize(
    ("exit_code", "words"),
    [
        (-9, "was killed by SIGKILL"),
        (-99, "was killed by signal 99"),
        (70, "exited with code 70: its engine died"),
        (1, "exited with code 1"),
        (0, "exited with code 0: stopped although nobody asked it to"),
    ],
)
def test_an_end_is_told_in_words(exit_code: int, words: str) -> None:
    assert describe(exit_code) == words


def test_an_unknown_exit_code_says_why_it_is_unknown() -> None:
    assert "what had started it is gone" in describe(None)
