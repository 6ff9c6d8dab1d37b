"""What a deployment's objectives may say, and what follows from them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.control.errors import InvalidSpec
from penstock.control.state.rollout.deployment import changed
from penstock.control.state.routing.slo import (
    Objective,
    Objectives,
    Slo,
    SloCount,
    burns,
)
from tests.fakes.control_values import NOON, deployment, spec


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"ttft_p50_ms": -1}, "slo.ttft_p50_ms is -1"),
        ({"total_p99_ms": 86_400_001}, "slo.total_p99_ms is 86400001"),
        ({"error_rate": 1.5}, "slo.error_rate is 1.5"),
        ({"error_rate": float("nan")}, "slo.error_rate is nan"),
    ],
)
def test_what_cannot_be_kept_is_refused(said: dict[str, float], words: str) -> None:
    with pytest.raises(InvalidSpec, match=words):
        Slo(**said)  # type: ignore[arg-type]


def test_only_what_is_asked_for_has_a_budget() -> None:
    assert Slo().budgets() == {}
    every = Slo(ttft_p50_ms=1, total_p99_ms=1, error_rate=0.02).budgets()
    assert every == {Objective.TTFT: 0.5, Objective.TOTAL: 0.01, Objective.ERRORS: 0.02}


def test_a_change_of_objectives_makes_no_new_replicas() -> None:
    asked = replace(spec(), objectives=Objectives(Slo(ttft_p50_ms=500)))
    after = changed(deployment(), asked, NOON)
    assert after.generation == 2
    assert after.template_digest == deployment().template_digest
    assert len(after.revisions) == 1


def test_a_rate_is_the_share_of_bad_ones_over_the_share_that_may_be() -> None:
    hour = timedelta(hours=1)
    counts = [(hour, SloCount("total_p99", 200, 4)), (hour, SloCount("ttft_p50", 9, 9))]
    (found,) = burns(Slo(total_p99_ms=2000), iter(counts))
    assert (found.objective, found.rate) == (Objective.TOTAL, 2.0)
    assert "2000 ms" in found.target
