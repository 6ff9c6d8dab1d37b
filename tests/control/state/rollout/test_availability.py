"""What clients of a deployment that does not serve are told."""

from __future__ import annotations

from dataclasses import replace

from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import Replica, ReplicaState
from penstock.control.state.rollout.availability import Availability, Prospect, prospect_of
from penstock.control.state.rollout.deployment import created
from tests.fakes.control_values import NOON, UID, node, replica, spec

NOON_MS = int(NOON.timestamp() * 1000)


def prospect(*replicas: Replica, wanted: int = 1, load_ms: int = 16_000) -> Prospect:
    deployment = replace(created(spec(replicas=wanted), NOON, uid=UID), load_ms=load_ms)
    view = ClusterView().with_node(node()).with_deployment(deployment)
    for one in replicas:
        view = view.with_replica(one)
    return prospect_of(view, deployment)


def process(state: ReplicaState, **status: object) -> Replica:
    made = replica(state=state)
    return replace(made, status=replace(made.status, **status))  # type: ignore[arg-type]


def test_one_ready_replica_serves() -> None:
    failed = replace(process(ReplicaState.FAILED), id=replica("r2").id)
    assert prospect(replica(), failed) == Prospect(Availability.SERVING)


def test_nobody_waits_for_a_deployment_of_which_none_is_wanted() -> None:
    assert prospect(wanted=0).availability is Availability.SCALED_TO_ZERO


def test_when_a_loading_replica_will_be_ready_follows_from_how_long_the_last_one_took() -> None:
    starting = process(ReplicaState.STARTING, started_at_ms=NOON_MS)
    assert prospect(starting).expected_ready_at_ms == NOON_MS + 16_000
    resting = process(ReplicaState.BACKOFF, next_start_ms=NOON_MS + 4_000)
    assert prospect(resting).expected_ready_at_ms == NOON_MS + 20_000
    assert prospect(replica(state=ReplicaState.PENDING)).expected_ready_at_ms == NOON_MS + 16_000
    unknown = prospect(starting, load_ms=0)
    assert (unknown.availability, unknown.expected_ready_at_ms) == (Availability.LOADING, 0)


def test_a_deployment_whose_replicas_all_failed_needs_an_operator_and_says_why() -> None:
    failed = process(ReplicaState.FAILED, last_error="no such model")
    assert prospect(failed) == Prospect(Availability.FAILED, "r1 failed: no such model")
    elsewhere = replace(failed, status=replace(failed.status, last_error="no /srv/models/x here"))
    assert prospect(elsewhere).detail == "r1 failed: no …/x here"
    looping = replace(process(ReplicaState.BACKOFF, last_error="boom"), crashes=3)
    assert prospect(looping) == Prospect(Availability.FAILED, "r1 backoff: boom")
    starting = replace(process(ReplicaState.STARTING), id=replica("r2").id)
    assert prospect(failed, starting).availability is Availability.LOADING


def test_one_that_ended_again_and_again_is_told_with_when_it_may_be_ready() -> None:
    due = process(ReplicaState.BACKOFF, next_start_ms=NOON_MS + 4_000)
    looping = replace(due, crashes=3)
    failed = replace(process(ReplicaState.FAILED), id=replica("r2").id)
    told = prospect(looping, failed, wanted=2)
    assert (told.availability, told.expected_ready_at_ms) == (Availability.FAILED, NOON_MS + 20_000)
    assert prospect(looping, load_ms=0).expected_ready_at_ms == NOON_MS + 4_000
