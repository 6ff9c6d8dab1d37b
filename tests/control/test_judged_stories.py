"""Histories of revisions that a canary judges: what serves meanwhile, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from penstock.control.managers.write import Write
from penstock.control.state.canary.canary import CanaryState
from penstock.control.state.canary.spec import CanarySpec, Step, Target
from penstock.control.state.fleet.replica import NodeId, ReplicaState
from penstock.control.state.rollout.deployment import DeploymentSpec
from penstock.control.state.rollout.revision import RevisionState
from tests.control.cluster_laws import Laws, serving_cluster
from tests.control.test_cluster_histories import at_step, judged, rolled_back
from tests.fakes.control_values import MINI, spec
from tests.fakes.simulated_cluster import SimulatedCluster
from tests.fakes.simulated_machines import BROKEN, FLAKY

STEPS = (Step(50, 100, 10), Step(500, 100, 5), Step(1000, 100, 5))


def of(model: str, replicas: int = 3) -> DeploymentSpec:
    return judged(spec(replicas=replicas, model=model))


@contextmanager
def judging(model: str = "b") -> Iterator[tuple[SimulatedCluster, Laws]]:
    """Three of model a serve, and a canary judges one of another model beside them."""
    with serving_cluster(replicas=3) as (cluster, laws):
        cluster.put(of("a"))
        cluster.put(of(model))
        yield cluster, laws


def states(cluster: SimulatedCluster) -> list[RevisionState]:
    return [r.state for r in cluster.view.deployments[MINI].revisions]


def test_more_of_it_run_with_each_step_and_all_once_it_has_passed_the_last() -> None:
    with judging() as (cluster, laws):
        for step, beside in ((0, 1), (3, 2), (4, 3)):
            cluster.move_canary(lambda it, _, step=step: at_step(it, step))  # type: ignore[misc]
            laws.run(30)
            assert cluster.ready_models() == ["a"] * 3 + ["b"] * beside
        cluster.move_canary(lambda it, _: replace(it, promoting=True))
        while cluster.ready_models() != ["b"] * 3:
            laws.run(1)
            assert len(cluster.ready_models()) >= 3
        cluster.settle()
        assert states(cluster) == [RevisionState.SERVED, RevisionState.SERVED]


def test_one_that_is_found_worse_is_in_no_route_from_that_moment_on_and_all_of_it_goes() -> None:
    with judging() as (cluster, laws):
        cluster.move_canary(lambda it, _: at_step(it, 3))
        laws.run(30)
        cluster.move_canary(rolled_back)
        bad, back = cluster.view.deployments[MINI].revisions[-2:]
        assert (bad.state, back.undoes) == (RevisionState.FAILED, bad.number)
        assert bad.cause == "canary mini-revisions rolled back: worse"
        ready = [r for r in cluster.view.replicas.values() if r.state is ReplicaState.READY]
        assert {r.template_digest for r in ready} == {back.template_digest}
        cluster.settle()
        assert cluster.ready_models() == ["a"] * 3


@pytest.mark.parametrize("model", [BROKEN, FLAKY])
def test_one_that_does_not_get_on_is_rolled_back_with_its_canary_and_takes_nothing_down(
    model: str,
) -> None:
    with judging(model) as (cluster, laws):
        for _ in range(120):
            laws.run(1)
            assert cluster.ready_models().count("a") == 3
        over = cluster.view.canaries.canary("mini-revisions")
        assert over.state is CanaryState.ROLLED_BACK
        assert over.why.startswith("revision 2 failed: ")
        assert cluster.view.deployments[MINI].revision.undoes == 2
        assert cluster.ready_models() == ["a"] * 3


def serve(cluster: SimulatedCluster, fails: float = 0) -> None:
    """A second of clients at every gateway."""
    for gateway in cluster.gateways.values():
        gateway.book.serves(2000, fails)
    cluster.step()


def test_judged_by_clients_a_good_one_takes_the_others_place_and_leaves_evidence() -> None:
    with serving_cluster(replicas=3) as (cluster, laws):
        plan = CanarySpec("mini-revisions", Target("mini"), "", STEPS)
        cluster.order(lambda canaries: canaries.create(plan, Write("alice")))
        cluster.put(of("a"))
        cluster.put(of("b"))
        for _ in range(200):
            serve(cluster)
            laws.check()
        over = cluster.view.canaries.canary("mini-revisions")
        assert over.state is CanaryState.PROMOTED, over.why
        known = cluster.view.deployments[MINI]
        assert (known.revision.number, known.revision.state) == (2, RevisionState.SERVED)
        assert cluster.ready_models() == ["b"] * 3
        (found,) = cluster.view.evidence.of(known.template_digest)
        assert (found.kind, found.passed, found.revision) == ("canary", True, 2)
        assert over.evidence == found.id


def test_judged_by_clients_a_bad_one_goes_and_its_template_is_known_for_it() -> None:
    with judging() as (cluster, laws):
        for _ in range(30):
            serve(cluster, fails=0.5)
            laws.check()
        cluster.restart_head()
        cluster.settle()
        bad = cluster.view.deployments[MINI].revisions[-2]
        assert bad.cause.startswith("canary mini-revisions rolled back: errors worse")
        assert cluster.ready_models() == ["a"] * 3
        (found,) = cluster.view.evidence.of(bad.template_digest)
        assert (found.kind, found.passed) == ("canary", False)


def test_one_that_another_replaces_goes_and_the_next_is_judged() -> None:
    with judging() as (cluster, laws):
        laws.run(30)
        cluster.put(of("c"))
        laws.run(60)
        assert cluster.ready_models() == ["a", "a", "a", "c"]
        canary = cluster.canary()
        assert canary
        assert (canary.state, canary.candidate) == (CanaryState.RUNNING, "revision 3")


def test_a_head_that_is_started_anew_goes_on_judging() -> None:
    with judging() as (cluster, laws):
        laws.run(30)
        cluster.restart_head()
        laws.run(60)
        assert cluster.ready_models() == ["a", "a", "a", "b"]
        assert cluster.canary()


def test_a_node_that_is_drained_meanwhile_takes_neither_along() -> None:
    with judging() as (cluster, laws):
        laws.run(30)
        cluster.drain_node(NodeId("n0"))
        for _ in range(60):
            laws.run(1)
            assert cluster.ready_models().count("a") >= 3
        assert cluster.ready_models() == ["a", "a", "a", "b"]
        assert {r.node for r in cluster.view.replicas.values()} == {"n1"}
