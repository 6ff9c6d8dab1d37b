"""What a canary that goes on has for itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.control.state.canary.canary import Canaries, Canary, CanaryState
from penstock.control.state.canary.owning import owned
from penstock.control.state.canary.spec import CanarySpec, Target
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import changed, created, paused
from tests.fakes.canary_values import canary
from tests.fakes.control_values import MINI, NOON, SECOND, UID, spec

LATER = NOON + SECOND
OLD = created(spec(), NOON, uid=UID)
OTHER_MODEL = replace(spec(), template=replace(spec().template, model="other"))


def having(canary: Canary) -> ClusterView:
    return ClusterView(canaries=Canaries({canary.spec.name: canary})).with_deployment(OLD)


def judging(state: CanaryState = CanaryState.RUNNING) -> ClusterView:
    plan = CanarySpec("try", Target("mini"), "")
    return having(
        Canary(plan, "c1", NOON, state=state, candidate="revision 1", candidate_digest="d")
    )


def taken(before: ClusterView, after: ClusterView, by: str = "") -> list[str]:
    return [f"{each.kind} {each.name}: {each.what}" for each in owned(before, after, by)]


def test_what_a_target_is_made_of_is_its_canarys() -> None:
    before = having(canary())
    after = before.with_deployment(changed(OLD, OTHER_MODEL, LATER))
    assert taken(before, after) == ["deployment mini: what mini is made of"]
    assert "`penstock canary abort try` first" in str(owned(before, after)[0])
    assert taken(before, before.with_deployment(changed(OLD, spec(replicas=3), LATER))) == []


def test_a_canary_itself_takes_nothing_from_itself() -> None:
    before = having(canary())
    after = before.with_deployment(changed(OLD, OTHER_MODEL, LATER))
    assert taken(before, after, by="try") == []
    without = replace(after, canaries=after.canaries.without("try"))
    assert taken(before, without) == []


@pytest.mark.parametrize(
    "state", [s for s in CanaryState if s not in ("running", "held", "paused")]
)
def test_one_that_waits_or_has_ended_has_nothing(state: CanaryState) -> None:
    before = judging(state)
    assert taken(before, before.without_deployment(MINI)) == []


def test_the_rollout_of_a_revision_that_is_judged_is_its_canarys() -> None:
    before = judging()
    after = before.with_deployment(paused(OLD, LATER))
    assert taken(before, after) == ["deployment mini: the rollout of mini"]
    of_another = having(canary())
    assert taken(of_another, of_another.with_deployment(paused(OLD, LATER))) == []
    over = replace(after.canaries.canary("try"), state=CanaryState.ABORTED)
    ended = replace(after, canaries=after.canaries.having(over))
    assert taken(before, ended) == ["deployment mini: the rollout of mini"]


def test_a_namesake_is_another_deployment() -> None:
    before = having(canary())
    after = before.with_deployment(replace(OLD, uid="f" * 32))
    assert taken(before, after) == ["deployment mini: deployment mini"]
