"""Which revisions are judged by which canary, from when, and until when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.control.errors import InvalidSpec
from penstock.control.state.canary.canary import Canary, CanaryState, canaries_of
from penstock.control.state.canary.revisions import begun, check_plan, with_one_replaced
from penstock.control.state.canary.spec import DEFAULT_STEPS, CanarySpec, Step, Target
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import ReplicaState
from penstock.control.state.rollout.deployment import (
    Deployment,
    DeploymentSpec,
    changed,
    created,
    restarted,
    resumed,
)
from penstock.control.state.rollout.promoting import with_failed_revision
from penstock.control.state.rollout.revision import Origin, RevisionState
from penstock.control.state.rollout.update import OnFailure, RolloutSettings, Update
from tests.fakes.control_values import MINI, NOON, SECOND, deployment, in_service, replica, spec

LATER = NOON + SECOND
ADA = Origin("ada", "better answers")
JUDGED = "mini-revisions"


def judged_spec(model: str = "a", on_failure: OnFailure = OnFailure.ROLLBACK) -> DeploymentSpec:
    update = Update(canary=JUDGED, on_failure=on_failure)
    return replace(spec(model=model, replicas=3), rollout=RolloutSettings(update))


SERVES = in_service(deployment(judged_spec()))


def after(before: Deployment, now: Deployment, view: ClusterView | None = None) -> ClusterView:
    return begun((view or ClusterView()).with_deployment(now), before, LATER)


def put(model: str, before: Deployment = SERVES, view: ClusterView | None = None) -> ClusterView:
    wanted = replace(before.spec, template=spec(model=model).template)
    return after(before, changed(before, wanted, LATER, ADA), view)


def canary(view: ClusterView) -> Canary:
    return view.canaries.canary(JUDGED)


def test_a_new_revision_is_judged_in_the_usual_steps_where_nobody_has_said_others() -> None:
    view = put("b")
    known, run = view.deployments[MINI], canary(view)
    assert known.revision.state is RevisionState.JUDGED
    assert (known.target.number, known.judged) == (1, known.revision)
    assert (run.state, run.step, run.permille) == (CanaryState.RUNNING, 1, 0)
    assert (run.stable, run.candidate) == ("revision 1", "revision 2")
    assert (run.revision, run.candidate_digest) == (2, known.template_digest)
    assert (run.by, run.reason, run.spec.steps) == ("ada", "better answers", DEFAULT_STEPS)


def test_a_plan_that_is_there_keeps_its_steps_and_runs_under_another_uid_each_time() -> None:
    plan = CanarySpec(JUDGED, Target("mini"), "", steps=(Step(500),))
    waiting = Canary(plan, "made", NOON, state=CanaryState.WAITING)
    there = replace(ClusterView(), canaries=canaries_of([waiting], []))
    first = put("b", view=there)
    assert (canary(first).state, canary(first).spec) == (CanaryState.RUNNING, plan)
    second = put("c", first.deployments[MINI], first)
    assert len({"made", canary(first).uid, canary(second).uid}) == 3
    assert canary(second).candidate == "revision 3"


def test_one_that_another_replaces_is_judged_no_more_and_its_replicas_take_nothing_new() -> None:
    view = put("b")
    before = view.deployments[MINI]
    of_b = replica("b1", digest=before.template_digest)
    view = view.with_replica(of_b).with_replica(replica("a1", digest=SERVES.template_digest))
    view = put("c", before, view)
    assert [r.state for r in view.deployments[MINI].revisions] == [
        RevisionState.SERVED,
        RevisionState.REPLACED,
        RevisionState.JUDGED,
    ]
    assert view.replicas[of_b.id].state is ReplicaState.DRAINING
    assert [r.id for r in view.replicas.values() if r.state is ReplicaState.READY] == ["a1"]


def test_going_back_while_one_is_judged_begins_no_canary_and_ends_that_one() -> None:
    view = put("b")
    before = view.deployments[MINI]
    now = changed(before, SERVES.spec, LATER)
    view = with_one_replaced(view.with_deployment(now), before, LATER)
    assert view.deployments[MINI].revision.is_rolling_out
    assert canary(view).state is CanaryState.ABORTED
    assert canary(view).why == "revision 3 has taken the place of revision 2"


def test_the_first_revision_a_restart_and_a_change_of_settings_begin_none() -> None:
    new = created(judged_spec(), NOON, uid="u1")
    assert not after(new, new).canaries.named
    assert not after(SERVES, restarted(SERVES, LATER, ADA)).canaries.named
    scaled = changed(SERVES, replace(SERVES.spec, replicas=5), LATER)
    assert not after(SERVES, scaled).canaries.named
    never_served = changed(new, judged_spec("b"), LATER)
    assert not after(new, never_served).canaries.named


def test_none_is_begun_where_the_deployment_names_none() -> None:
    plain = in_service(deployment(spec(replicas=3)))
    view = put("b", plain)
    assert view.deployments[MINI].revision.is_rolling_out
    assert not view.canaries.named


def test_a_restart_of_what_is_judged_is_judged_anew() -> None:
    view = put("b")
    before, first = view.deployments[MINI], canary(view)
    view = after(before, restarted(before, LATER, ADA), view)
    assert view.deployments[MINI].revision.is_judged
    assert (canary(view).revision, canary(view).uid != first.uid) == (3, True)


def test_one_that_was_judged_bad_and_is_tried_again_is_judged_again() -> None:
    pausing = in_service(deployment(judged_spec(on_failure=OnFailure.PAUSE)))
    view = put("b", pausing)
    view = with_failed_revision(view, "mini", 2, "worse", LATER)
    over = replace(canary(view), state=CanaryState.ROLLED_BACK)
    view = replace(view, canaries=view.canaries.having(over))
    failed = view.deployments[MINI]
    view = after(failed, resumed(failed, LATER), view)
    assert view.deployments[MINI].revision.is_judged
    assert canary(view).state is CanaryState.RUNNING


def test_a_canary_of_something_else_cannot_judge_revisions() -> None:
    other = Canary(CanarySpec(JUDGED, Target("mini"), "next"), "other", NOON)
    view = replace(ClusterView(), canaries=canaries_of([other], []))
    with pytest.raises(InvalidSpec, match="that canary is of mini and next"):
        check_plan(view, SERVES.spec)
    check_plan(ClusterView(), SERVES.spec)
    with pytest.raises(InvalidSpec, match=r"update\.canary is 'No!': it must be"):
        Update(canary="No!")
