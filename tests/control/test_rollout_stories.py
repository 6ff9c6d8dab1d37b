"""Histories of changed templates: what gets on, what fails, what is paused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.state.rollout.deployment import paused, resumed
from penstock.control.state.rollout.revision import RevisionState
from penstock.control.state.rollout.status import DeploymentPhase, status_of
from penstock.control.state.rollout.update import OnFailure, RolloutSettings, Update
from tests.control.cluster_laws import Laws, serving_cluster
from tests.fakes.control_values import MINI, spec
from tests.fakes.simulated_cluster import SimulatedCluster
from tests.fakes.simulated_machines import BROKEN, FLAKY


@settings(max_examples=5)
@given(wanted=st.integers(1, 4))
def test_a_revision_that_does_not_get_ready_is_rolled_back_and_takes_nothing_down(
    wanted: int,
) -> None:
    with serving_cluster(replicas=wanted) as (cluster, laws):
        cluster.put(spec(replicas=wanted, model=BROKEN))
        for _ in range(60):
            laws.run(1)
            assert len(cluster.ready()) == wanted
        known = cluster.view.deployments[MINI]
        bad, back = known.revisions
        assert (bad.state, back.state) == (RevisionState.FAILED, RevisionState.SERVED)
        assert (back.by, back.undoes) == ("penstock", bad.number)
        assert "cannot load broken" in bad.cause
        assert cluster.ready_models() == ["a"] * wanted
        assert status_of(cluster.view, known).phase is DeploymentPhase.READY


def test_a_revision_that_fails_where_that_is_to_pause_leaves_the_last_one_on() -> None:
    with serving_cluster(replicas=3) as (cluster, laws):
        pausing = RolloutSettings(Update(min_ready_ms=5000, on_failure=OnFailure.PAUSE))
        cluster.put(replace(spec(replicas=3, model=BROKEN), rollout=pausing))
        laws.run(60)
        known = cluster.view.deployments[MINI]
        assert known.spec.template.model == BROKEN
        told = status_of(cluster.view, known)
        assert told.phase is DeploymentPhase.UPDATING
        assert told.message.startswith("revision 2 failed, revision 1 goes on: ")
        assert "cannot load broken" in told.message
        cluster.put(replace(known.spec, replicas=4))
        cluster.settle()
        assert cluster.ready_models() == ["a"] * 4
        cluster.put(spec(replicas=4, model="fixed"))
        cluster.settle()
        assert cluster.ready_models() == ["fixed"] * 4
        assert status_of(cluster.view, cluster.view.deployments[MINI]).message == ""


def test_a_rollout_that_is_paused_stays_where_it_is_and_goes_on_when_it_is_told_to() -> None:
    with serving_cluster(replicas=3) as (cluster, laws):
        cluster.put(spec(replicas=3, model="b"))
        while sorted(cluster.ready_models()) != ["a", "a", "a", "b"]:
            laws.run(1)
        cluster.change(lambda known, now: paused(known, now))
        laws.run(60)
        assert sorted(cluster.ready_models()) == ["a", "a", "a", "b"]
        told = status_of(cluster.view, cluster.view.deployments[MINI])
        assert (told.rollout.ready, told.rollout.old, told.rollout.paused) == (1, 3, True)
        assert told.message.startswith("the rollout of revision 2 is paused: `penstock rollout")
        known = cluster.view.deployments[MINI]
        cluster.put(replace(known.spec, replicas=5))
        laws.run(60)
        assert sorted(cluster.ready_models()) == ["a", "a", "a", "a", "b"]
        cluster.change(lambda known, now: resumed(known, now))
        cluster.settle()
        assert cluster.ready_models() == ["b"] * 5
        assert cluster.view.deployments[MINI].revision.state is RevisionState.SERVED


def test_a_revision_that_failed_is_tried_once_more_when_it_is_resumed() -> None:
    with serving_cluster(replicas=2) as (cluster, laws):
        pausing = RolloutSettings(Update(min_ready_ms=5000, on_failure=OnFailure.PAUSE))
        cluster.put(replace(spec(replicas=2, model=BROKEN), rollout=pausing))
        laws.run(60)
        cluster.change(lambda known, now: resumed(known, now))
        assert cluster.view.deployments[MINI].revision.is_rolling_out
        laws.run(60)
        assert cluster.view.deployments[MINI].revision.state is RevisionState.FAILED
        assert cluster.ready_models() == ["a"] * 2


def test_where_nothing_served_before_a_revision_is_tried_again() -> None:
    with SimulatedCluster(nodes=2, gateways=1) as cluster:
        cluster.put(spec(model=BROKEN))
        laws = Laws(cluster)
        laws.run(60)
        known = cluster.view.deployments[MINI]
        assert known.revision.state is RevisionState.ROLLING_OUT
        assert "cannot load broken" in status_of(cluster.view, known).message


@pytest.mark.parametrize("wanted", [1, 3])
def test_a_version_whose_replicas_end_soon_after_they_are_ready_takes_nothing_down(
    wanted: int,
) -> None:
    with serving_cluster(replicas=wanted) as (cluster, laws):
        cluster.put(spec(replicas=wanted, model=FLAKY))
        for _ in range(120):
            laws.run(1)
            assert cluster.ready_models().count("a") == wanted
        bad, _ = cluster.view.deployments[MINI].revisions
        assert bad.state is RevisionState.FAILED
