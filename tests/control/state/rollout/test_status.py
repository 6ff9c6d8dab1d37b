"""A deployment's status in one word and one line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import NodeState, Replica, ReplicaState
from penstock.control.state.rollout.deployment import created
from penstock.control.state.rollout.status import DeploymentPhase, DeploymentStatus, status_of
from tests.fakes.control_values import MINI, NOON, UID, node, replica, spec

FAILED = replica("f", ReplicaState.FAILED)
BROKEN = replace(FAILED, status=replace(FAILED.status, last_error="no such model"))


def status(*replicas: Replica, wanted: int = 2) -> DeploymentStatus:
    view = (
        ClusterView()
        .with_node(node())
        .with_deployment(created(spec(replicas=wanted), NOON, uid=UID))
    )
    for one in replicas:
        view = view.with_replica(one)
    return status_of(view, view.deployments[MINI])


@pytest.mark.parametrize(
    ("replicas", "phase", "ready"),
    [
        ([], DeploymentPhase.STARTING, 0),
        ([replica("a")], DeploymentPhase.DEGRADED, 1),
        ([replica("a"), replica("b")], DeploymentPhase.READY, 2),
        ([replica("a"), replica("b"), BROKEN], DeploymentPhase.UPDATING, 2),
        ([BROKEN], DeploymentPhase.FAILED, 0),
        ([replica("a"), replica("b", digest="old")], DeploymentPhase.UPDATING, 2),
        ([replica("a"), replica("b", ReplicaState.DRAINING)], DeploymentPhase.DEGRADED, 1),
    ],
)
def test_the_phase_follows_from_the_replicas(
    replicas: list[Replica], phase: DeploymentPhase, ready: int
) -> None:
    found = status(*replicas)
    assert (found.phase, found.ready) == (phase, ready)


def test_a_deployment_that_wants_nothing_and_has_nothing_is_stopped() -> None:
    assert status(wanted=0).phase is DeploymentPhase.STOPPED


def test_the_message_says_why_a_replica_failed() -> None:
    assert status(replica("a"), BROKEN).message == "f failed: no such model"


def test_the_message_is_empty_when_all_is_well() -> None:
    assert status(replica("a"), replica("b")).message == ""


def test_the_message_says_that_no_node_is_there() -> None:
    view = ClusterView().with_deployment(created(spec(), NOON, uid=UID))
    view = view.with_node(node(state=NodeState.LOST))
    assert "no node is ready" in status_of(view, view.deployments[MINI]).message


def test_the_message_counts_what_is_missing() -> None:
    assert status(replica("a")).message == "waiting for 1 of 2 replicas"
