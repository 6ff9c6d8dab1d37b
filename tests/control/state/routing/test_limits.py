"""Which limits and shares a deployment may have, and what it has where nothing is said."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, cast

import pytest

from penstock.control.errors import InvalidSpec
from penstock.control.state.routing.limits import (
    LONGEST_RESUME_WAIT_MS,
    CanaryWeight,
    Limits,
    Sharing,
    selection_policy,
)
from penstock.control.state.switch import Switch


def test_who_says_nothing_has_a_queue_of_a_hundred_for_half_a_minute() -> None:
    limits = Limits()
    assert (limits.max_ongoing, limits.max_queued, limits.queue_deadline_ms) == (0, 100, 30_000)
    assert (limits.wait_budget_ms, limits.first_event_deadline_ms) == (0, 0)
    assert (limits.kv_pressure, limits.max_n, limits.progress_deadline_ms) == (0.93, 16, 60_000)
    assert (limits.resume, limits.resume_wait_ms) == (Switch.ON, 10_000)
    assert Sharing() == Sharing(selection_policy("power_of_two"), ())


@pytest.mark.parametrize("name", [each.name for each in fields(Limits) if each.name != "resume"])
def test_a_limit_below_zero_is_refused(name: str) -> None:
    with pytest.raises(InvalidSpec, match=f"{name} is -1"):
        replace(Limits(), **cast("Any", {name: -1}))


def test_nobody_waits_for_hours_to_go_on() -> None:
    assert Limits(resume_wait_ms=LONGEST_RESUME_WAIT_MS)
    with pytest.raises(InvalidSpec, match="resume_wait_ms is 600001: it must be 0 to 600000"):
        Limits(resume_wait_ms=LONGEST_RESUME_WAIT_MS + 1)


@pytest.mark.parametrize("share", [1.01, float("nan"), float("inf")])
def test_a_share_of_kv_is_one_at_most(share: float) -> None:
    with pytest.raises(InvalidSpec, match="kv_pressure is"):
        Limits(kv_pressure=share)


@pytest.mark.parametrize(
    ("canary", "words"),
    [
        ((CanaryWeight("a", -1),), "'a' has permille -1"),
        ((CanaryWeight("a", 1001),), "'a' has permille 1001"),
        ((CanaryWeight("a", 1), CanaryWeight("a", 2)), "names 'a' twice"),
        ((CanaryWeight("a", 600), CanaryWeight("b", 401)), "are 1001 permille"),
    ],
)
def test_shares_that_cannot_be_are_refused(canary: tuple[CanaryWeight, ...], words: str) -> None:
    with pytest.raises(InvalidSpec, match=words):
        Sharing(canary=canary)


def test_all_requests_may_go_to_canaries() -> None:
    assert Sharing(canary=(CanaryWeight("a", 600), CanaryWeight("b", 400))).canary


def test_a_policy_that_does_not_exist_is_named_beside_those_that_do() -> None:
    with pytest.raises(InvalidSpec, match="is 'fastest': it must be one of round_robin, least_lo"):
        selection_policy("fastest")
