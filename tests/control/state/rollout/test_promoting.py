"""What a canary's end changes of a deployment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.control.errors import NotFound
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import Deployment, DeploymentName, changed, paused
from penstock.control.state.rollout.promoting import with_failed_revision, with_template_of
from penstock.control.state.rollout.revision import Origin, RevisionState
from penstock.control.state.rollout.update import OnFailure, RolloutSettings, Update
from tests.fakes.control_values import NOON, SECOND, deployment, in_service, spec

LATER = NOON + SECOND
BY_CANARY = Origin("penstock", "canary chat-next")
MINI = in_service(deployment(spec(replicas=3)))
NEXT = in_service(deployment(spec(name="next", model="better", replicas=1), uid="u2"))


def view_of(*deployments: Deployment) -> ClusterView:
    view = ClusterView()
    for each in deployments:
        view = view.with_deployment(each)
    return view


def mini(view: ClusterView) -> Deployment:
    return view.deployments[DeploymentName("mini")]


def test_the_targets_next_revision_has_the_candidates_template_and_its_own_settings() -> None:
    now = mini(with_template_of(view_of(MINI, NEXT), "mini", "next", BY_CANARY, LATER))
    assert now.spec == replace(MINI.spec, template=NEXT.spec.template)
    assert (now.revision.number, now.revision.state) == (2, RevisionState.ROLLING_OUT)
    assert (now.revision.by, now.revision.reason) == BY_CANARY
    assert now.template_digest == NEXT.template_digest


def test_what_the_candidate_serves_is_promoted_not_what_it_is_being_made_of() -> None:
    moving = paused(
        changed(NEXT, replace(NEXT.spec, template=spec(model="x").template), LATER), NOON
    )
    now = mini(with_template_of(view_of(MINI, moving), "mini", "next", BY_CANARY, LATER))
    assert now.spec.template.model == "better"


def test_promoted_twice_it_has_one_new_revision() -> None:
    once = with_template_of(view_of(MINI, NEXT), "mini", "next", BY_CANARY, LATER)
    assert with_template_of(once, "mini", "next", BY_CANARY, LATER + SECOND) is once


def test_one_that_failed_and_is_promoted_again_is_tried_again() -> None:
    rollout = RolloutSettings(Update(on_failure=OnFailure.PAUSE))
    kept = replace(MINI, spec=replace(MINI.spec, rollout=rollout))
    once = with_template_of(view_of(kept, NEXT), "mini", "next", BY_CANARY, LATER)
    failed = with_failed_revision(once, "mini", 2, "no memory", LATER)
    assert mini(failed).revision.state is RevisionState.FAILED
    again = mini(with_template_of(failed, "mini", "next", BY_CANARY, LATER))
    assert (again.revision.number, again.revision.state) == (2, RevisionState.ROLLING_OUT)


def test_either_that_is_not_there_is_named() -> None:
    with pytest.raises(NotFound, match="'next'"):
        with_template_of(view_of(MINI), "mini", "next", BY_CANARY, LATER)
    with pytest.raises(NotFound, match="'mini'"):
        with_template_of(view_of(NEXT), "mini", "next", BY_CANARY, LATER)


def test_a_revision_that_is_judged_worse_fails_and_the_one_before_takes_its_place() -> None:
    rolling = view_of(changed(MINI, replace(MINI.spec, template=NEXT.spec.template), LATER))
    _, bad, now = mini(with_failed_revision(rolling, "mini", 2, "rolled back", LATER)).revisions
    assert (bad.state, bad.cause) == (RevisionState.FAILED, "rolled back")
    assert (now.number, now.undoes, now.template_digest) == (3, 2, MINI.template_digest)


def test_a_revision_that_is_not_rolled_out_any_more_stays_as_it_is() -> None:
    there = view_of(MINI)
    assert with_failed_revision(there, "mini", 1, "rolled back", LATER) is there
    assert with_failed_revision(there, "mini", 7, "rolled back", LATER) is there
    assert with_failed_revision(there, "gone", 1, "rolled back", LATER) is there
