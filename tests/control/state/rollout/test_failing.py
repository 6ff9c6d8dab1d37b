"""When a revision is given up, and what takes its place."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from penstock.control.errors import InvalidSpec
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import Evidence, Replica, ReplicaState
from penstock.control.state.rollout.deployment import (
    Deployment,
    after_failure,
    changed,
    restarted,
)
from penstock.control.state.rollout.failing import CRASH_LOOP, cause_of_failure
from penstock.control.state.rollout.revision import NOBODY, Cause, RevisionState
from penstock.control.state.rollout.status import status_of
from penstock.control.state.rollout.update import OnFailure, RolloutSettings, Update
from tests.fakes.control_values import NOON, SECOND, deployment, in_service, replica, spec

READY = timedelta(minutes=10)
SERVED = in_service(deployment())
CHANGED = changed(SERVED, spec(model="next"), NOON)
NO_MODEL = Cause("no such model", "new")


def new(state: ReplicaState = ReplicaState.STARTING, of: Deployment = CHANGED) -> Replica:
    """A replica of the revision that is rolled out."""
    return replace(replica("new", state, digest=of.template_digest), generation=of.generation)


def cause(one: Replica, of: Deployment = CHANGED, now: datetime = NOON) -> str:
    view = ClusterView().with_deployment(of).with_replica(one)
    found = cause_of_failure(view, of, now, READY)
    assert found is None or found.replica == one.id
    return found.text if found else ""


def test_one_that_its_agent_gave_up_fails_the_revision_in_the_engines_words() -> None:
    one = new(ReplicaState.FAILED)
    refused = replace(one, status=replace(one.status, last_error="no such model"))
    assert cause(refused) == "new failed: no such model"


def test_one_that_ends_again_and_again_fails_it() -> None:
    one = replace(new(ReplicaState.BACKOFF), crashes=CRASH_LOOP)
    assert cause(one) == "new ended 3 times on n1: exit code 0"
    assert cause(replace(one, crashes=CRASH_LOOP - 1)) == ""


def test_one_that_answers_and_does_no_work_fails_it() -> None:
    assert cause(replace(new(ReplicaState.READY), evidence=Evidence.WEDGED))


def test_one_that_is_not_ready_in_time_fails_it() -> None:
    assert cause(new(), now=NOON + READY - SECOND) == ""
    assert cause(new(), now=NOON + READY) == "new was not ready after 600 s"
    hurried = replace(CHANGED.spec, rollout=RolloutSettings(Update(ready_deadline_ms=2_000)))
    assert cause(new(), replace(CHANGED, spec=hurried), NOON + 2 * SECOND)
    limited = replace(CHANGED.spec, start_limit_ms=3_000)
    assert cause(new(), replace(CHANGED, spec=limited), NOON + 3 * SECOND)


def test_a_revision_is_kept_that_served_or_that_has_none_before_it() -> None:
    bad = new(ReplicaState.FAILED)
    assert cause(bad, in_service(CHANGED)) == ""
    alone = changed(deployment(), spec(model="next"), NOON)
    assert cause(bad, alone) == ""


def test_replicas_of_another_revision_say_nothing_of_it() -> None:
    assert cause(replica("old", ReplicaState.FAILED)) == ""


def test_the_last_that_served_takes_its_place_and_is_not_given_up_in_turn() -> None:
    back = after_failure(CHANGED, NO_MODEL, NOON)
    _, bad, now = back.revisions
    assert (bad.state, bad.cause) == (RevisionState.FAILED, "no such model")
    assert bad.failed_replica == "new"
    assert (now.number, now.by, now.undoes) == (3, "penstock", 2)
    assert now.reason == "back to revision 1: revision 2 failed: no such model"
    assert back.spec == SERVED.spec
    assert back.template_digest == SERVED.template_digest
    assert back.target == now
    assert cause(replica("old", ReplicaState.FAILED), back) == ""
    told = status_of(ClusterView().with_deployment(back), back).rollout
    assert (told.undoes, told.cause, told.failed_replica) == (2, "no such model", "new")


def test_where_it_is_to_pause_the_spec_stays_and_replicas_are_of_the_last_that_served() -> None:
    rollout = RolloutSettings(Update(on_failure=OnFailure.PAUSE))
    known = changed(SERVED, replace(spec(model="next"), rollout=rollout), NOON)
    paused = after_failure(known, NO_MODEL, NOON)
    assert paused.spec.template.model == "next"
    assert paused.target.number == 1
    assert (paused.revision.cause, paused.trouble) == ("no such model", "")


def test_a_restart_that_fails_leaves_the_replicas_from_before_it() -> None:
    known = restarted(SERVED, NOON, NOBODY)
    back = after_failure(known, Cause("out of memory"), NOON)
    old = replica("old")
    view = ClusterView().with_deployment(back).with_replica(old)
    assert cause_of_failure(view, back, NOON, READY) is None
    assert back.restart_generation <= old.generation
    assert back.template_digest == old.template_digest


def test_an_update_that_could_never_go_on_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="no replica could ever take another's place"):
        Update(max_surge=0)
    with pytest.raises(InvalidSpec, match=r"update\.max_surge is -1"):
        Update(max_surge=-1)
