"""What gateways count of canaries is read as it was sent, and nonsense as nothing."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.control.rpc.canary_wire import MOST_REASONS, step_counts
from penstock.control.state.canary.counts import ArmCounts, Counts, StepCounts
from penstock.v1 import canary_pb2
from penstock.v1.canary_pb2 import CanaryArm, CanaryCount, CanaryReport, CanaryTimes


def arm(**said: Any) -> CanaryArm:
    usual = {"sessions": 9, "bad_sessions": 2, "answered_sessions": 7, "requests": 12}
    return CanaryArm(**{**usual, **said})


def read(candidate: CanaryArm) -> tuple[StepCounts, ...]:
    return step_counts([CanaryReport(uid="c1", step=2, candidate=candidate)])


def test_every_count_is_taken() -> None:
    times = {name: CanaryTimes(bins=[3, 255], counts=[4, 1]) for name in ("ttft", "total")}
    full = arm(
        errors=[CanaryCount(reason="timeout", count=2)],
        finishes=[CanaryCount(reason="stop", count=7)],
        between_tokens=CanaryTimes(bins=[0], counts=[6]),
        bad_finishes=1,
        prompt_tokens=100,
        completion_tokens=200,
        saved=3,
        saved_sessions=1,
        refused=4,
        **times,
    )
    row = ((3, 4), (255, 1))
    expected = ArmCounts(
        sessions=9,
        bad_sessions=2,
        errors=(("timeout", 2),),
        answered_sessions=7,
        bad_finishes=1,
        ttft=row,
        between_tokens=((0, 6),),
        total=row,
        requests=12,
        finishes=(("stop", 7),),
        prompt_tokens=100,
        completion_tokens=200,
        saved=3,
        saved_sessions=1,
        refused=4,
    )
    assert read(full) == (StepCounts("c1", 2, Counts(candidate=expected)),)


@pytest.mark.parametrize(
    "nonsense",
    [
        {"bad_sessions": 10},
        {"answered_sessions": 10},
        {"bad_finishes": 8},
        {"saved_sessions": 3},
        {"requests": 2**60},
        {"saved": 2**60},
        {"ttft": CanaryTimes(bins=[1], counts=[8])},
        {"ttft": CanaryTimes(bins=[1, 2], counts=[1])},
        {"ttft": CanaryTimes(bins=[2, 1], counts=[1, 1])},
        {"ttft": CanaryTimes(bins=[1, 1], counts=[1, 1])},
        {"ttft": CanaryTimes(bins=[256], counts=[1])},
        {"errors": [CanaryCount(reason="x", count=2**60)]},
    ],
)
def test_counts_that_cannot_be_are_as_good_as_untold(nonsense: dict[str, Any]) -> None:
    assert read(arm(**nonsense)) == ()


def test_foreign_words_are_kept_short_and_few() -> None:
    said = [CanaryCount(reason=each, count=1) for each in ("a\n", "é", "x" * 65)]
    said += [CanaryCount(reason=f"r{number:02}", count=1) for number in range(MOST_REASONS + 5)]
    ((told),) = read(arm(finishes=said))
    tally = dict(told.counts.candidate.finishes)
    assert len(tally) <= MOST_REASONS + 1
    assert sum(tally.values()) == len(said)
    assert tally["other"] >= 3


def test_no_more_than_there_can_be_are_read() -> None:
    assert len(step_counts(canary_pb2.CanaryReport(uid="c", step=1) for _ in range(500))) == 100
    assert step_counts([CanaryReport(uid="c" * 65, step=1)]) == ()
