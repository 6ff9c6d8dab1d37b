"""Histories of changed templates: what gets on, what fails, what is paused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.state.fleet.replica import NodeId
from penstock.control.state.rollout.deployment import (
    DeploymentSpec,
    paused,
    restarted,
    resumed,
)
from penstock.control.state.rollout.revision import NOBODY, RevisionState
from penstock.control.state.rollout.status import DeploymentPhase, status_of
from penstock.control.state.rollout.update import OnFailure, RolloutSettings, Update
from penstock.control.state.routing.snapshot import routes_of
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


def changing(model: str, replicas: int = 2, *, keep: int = 10, **update: Any) -> DeploymentSpec:
    """A spec of this model that changes in this way."""
    rollout = RolloutSettings(Update(**{"min_ready_ms": 5000, **update}), revision_limit=keep)
    return replace(spec(replicas=replicas, model=model), rollout=rollout)


def test_what_served_is_gone_back_to_also_behind_changes_that_never_did() -> None:
    for before in (
        lambda cluster: cluster.change(lambda known, now: restarted(known, now, NOBODY)),
        lambda cluster: [cluster.put(changing(model)) for model in ("b", "a")],
        lambda cluster: [cluster.put(changing(f"m{n}")) for n in range(11)],
    ):
        with serving_cluster() as (cluster, laws):
            before(cluster)
            cluster.put(changing(BROKEN))
            laws.run(60)
            assert cluster.view.deployments[MINI].spec.template.model == "a"


def test_what_served_is_kept_beyond_the_limit() -> None:
    with serving_cluster() as (cluster, laws):
        for model in (BROKEN, FLAKY):
            cluster.put(changing(model, keep=1, on_failure=OnFailure.PAUSE))
            laws.run(60)
        cluster.put(changing(FLAKY, 4, keep=1, on_failure=OnFailure.PAUSE))
        laws.run(60)
        assert cluster.ready_models() == ["a"] * 4


def test_a_change_while_another_is_under_way_takes_down_first_what_has_not_lasted() -> None:
    with serving_cluster(replicas=1) as (cluster, laws):
        cluster.put(changing(FLAKY, 1))
        while FLAKY not in cluster.ready_models():
            laws.run(1)
        cluster.put(changing("c", 1))
        while cluster.ready_models() != ["c"]:
            laws.run(1)
            assert {"a", "c"} & set(cluster.ready_models())


def test_what_is_scaled_to_nothing_in_trouble_has_not_served() -> None:
    with SimulatedCluster(nodes=2, gateways=1) as cluster:
        cluster.put(spec(model=BROKEN))
        Laws(cluster).run(100)
        cluster.put(spec(model=BROKEN, replicas=0))
        Laws(cluster).run(20)
        assert cluster.view.deployments[MINI].revision.is_rolling_out


def test_a_node_is_emptied_also_where_nothing_may_run_beside_what_is_wanted() -> None:
    with serving_cluster() as (cluster, laws):
        cluster.put(changing("a", max_surge=0, max_unavailable=1))
        cluster.settle()
        cluster.drain_node(NodeId("n0"))
        laws.run(60)
        assert {each.node for each in cluster.view.replicas.values()} == {"n1"}
        assert len(cluster.ready_models()) == 2


def test_while_paused_what_does_not_get_ready_counts_for_nothing() -> None:
    with serving_cluster(replicas=3) as (cluster, laws):
        cluster.put(changing(BROKEN, 3))
        cluster.step()
        cluster.change(paused)
        laws.run(10)
        agent = next(each for each in cluster.agents.values() if "a" in each.models.values())
        victim = next(i for i in agent.processes if agent.models[i] == "a")
        del agent.processes[victim]
        laws.broken()
        laws.run(120)
        assert cluster.ready_models() == ["a"] * 3
        known = cluster.view.deployments[MINI]
        cluster.put(replace(known.spec, replicas=0))
        laws.run(60)
        assert cluster.ready_models() == []


def test_no_adapters_are_asked_for_while_another_model_serves() -> None:
    with SimulatedCluster(nodes=2, gateways=1) as cluster:
        cluster.step()
        for model in ("a", "b"):
            wanted = changing(model)
            slots = replace(wanted.template, max_adapters=4)
            cluster.put(replace(wanted, template=slots))
            if model == "a":
                cluster.settle()
        while sorted(cluster.ready_models()) != ["a", "a", "b"]:
            cluster.step()
        cluster.change(paused)
        for _ in range(20):
            cluster.step()
        (route,) = routes_of(cluster.view).deployments
        assert route.base_family == ""


def test_routes_that_were_made_before_tell_of_revisions_what_new_ones_do() -> None:
    with serving_cluster() as (cluster, laws):
        cluster.put(changing(BROKEN))
        laws.run(60)
        told = {each.id: each.revision for each in cluster.gateways["g0"].routes.replicas}
        assert told == {each.id: each.revision for each in routes_of(cluster.view).replicas}
