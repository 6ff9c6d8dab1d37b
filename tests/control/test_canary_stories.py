"""Histories of canaries: one that is good, one that is not, and what befalls head and gateways."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from penstock.control.managers.write import Write
from penstock.control.state.canary.canary import Canary, CanaryState
from penstock.control.state.canary.spec import CanarySpec, Step, Target
from penstock.control.state.rollout.deployment import DeploymentName, DeploymentSpec
from penstock.control.state.rollout.revision import RevisionState, revision_of
from penstock.control.state.rollout.update import RolloutSettings, Update
from tests.fakes.control_values import MINI, spec
from tests.fakes.simulated_cluster import SimulatedCluster
from tests.fakes.simulated_machines import SimulatedGateway

STEPS = (Step(50, 100, 10), Step(500, 100, 5), Step(1000, 100, 5))
NEXT = DeploymentName("next")
ALICE = Write("alice")


@contextmanager
def canaried(replicas: int = 2, gateways: int = 2) -> Iterator[SimulatedCluster]:
    """Mini serves model a, next serves model b, and a canary from the one to the other begins."""
    with SimulatedCluster(nodes=2, gateways=gateways) as cluster:
        cluster.put(spec(replicas=2, model="a"))
        cluster.put(spec(name="next", replicas=replicas, model="b"))
        cluster.settle()
        said = CanarySpec("try", Target("mini"), "next", STEPS)
        cluster.order(lambda canaries: canaries.create(said, ALICE))
        yield cluster


def canary(cluster: SimulatedCluster) -> Canary:
    return cluster.view.canaries.canary("try")


def shares(gateway: SimulatedGateway) -> list[int]:
    (mini,) = (each for each in gateway.routes.deployments if each.name == MINI)
    return [each.permille for each in mini.shares]


def serve(cluster: SimulatedCluster, fails: float = 0, stable_fails: float = 0) -> None:
    """A second of clients at every gateway."""
    for gateway in cluster.gateways.values():
        gateway.book.serves(2000, fails, stable_fails)
    cluster.step()


def until(cluster: SimulatedCluster, state: CanaryState, seconds: int = 120) -> None:
    for _ in range(seconds):
        if canary(cluster).state is state:
            return
        serve(cluster)
    raise AssertionError(f"{canary(cluster).state}: {canary(cluster).why}")


@pytest.mark.parametrize("restarts", [False, True])
def test_a_good_one_goes_through_its_steps_and_takes_its_targets_place(restarts: bool) -> None:
    with canaried() as cluster:
        seen: list[int] = []
        for second in range(150):
            if canary(cluster).state is CanaryState.PROMOTED:
                break
            if restarts and not canary(cluster).promoting and second % 7 == 3:
                cluster.restart_head()
            serve(cluster, fails=0.001, stable_fails=0.001)
            seen += shares(cluster.gateways["g0"])
        assert canary(cluster).state is CanaryState.PROMOTED, canary(cluster).why
        assert [each for each in dict.fromkeys(seen) if each] == [50, 500, 1000]
        assert seen == sorted(seen)
        assert [each.permille for each in canary(cluster).passed] == [50, 500, 1000]
        cluster.settle()
        mini = cluster.view.deployments[MINI]
        assert (mini.revision.number, mini.revision.state) == (2, RevisionState.SERVED)
        assert cluster.ready_models() == ["b"] * 4
        assert not shares(cluster.gateways["g0"])


@pytest.mark.parametrize("cut_off", [False, True])
def test_a_bad_one_is_gone_from_every_gateway_within_a_second(cut_off: bool) -> None:
    with canaried() as cluster:
        one, other = cluster.gateways.values()
        while shares(one) != [50]:
            serve(cluster)
        if cut_off:
            other.silent = 30
        serve(cluster, fails=0.5)
        serve(cluster)
        assert canary(cluster).state is CanaryState.ROLLED_BACK
        assert canary(cluster).why.startswith("errors worse: ")
        cluster.step()
        assert not shares(one)
        assert cut_off or not shares(other)
        assert not one.book.told()
        cluster.step()
        assert cluster.view.deployments[MINI].spec.template.model == "a"


def test_an_outage_of_both_arms_is_not_the_candidates() -> None:
    with canaried() as cluster:
        while canary(cluster).step < 2:
            serve(cluster, fails=0.5, stable_fails=0.5)
        assert canary(cluster).is_active


def test_it_waits_for_the_replicas_of_a_step_and_goes_on_once_they_are_scaled() -> None:
    with canaried(replicas=1) as cluster:
        cluster.put(spec(replicas=4, model="a"))
        for _ in range(60):
            serve(cluster)
        held = canary(cluster)
        assert (held.state, held.step, held.permille) == (CanaryState.HELD, 2, 50)
        assert "want 2 ready replicas of next, there are 1" in held.why
        cluster.put(spec(name="next", replicas=4, model="b"))
        until(cluster, CanaryState.PROMOTED)


def test_a_gateway_that_is_silent_holds_it_and_one_that_comes_back_lets_it_on() -> None:
    with canaried() as cluster:
        other = cluster.gateways["g1"]
        while shares(other) != [50]:
            serve(cluster)
        other.silent = 60
        for _ in range(60):
            serve(cluster)
        held = canary(cluster)
        assert (held.state, held.step) == (CanaryState.HELD, 1)
        assert "gateway g1 does not report" in held.why
        until(cluster, CanaryState.PROMOTED)


def test_a_head_that_starts_waits_for_the_gateway_that_it_has_not_heard_of() -> None:
    with canaried() as cluster:
        other = cluster.gateways["g1"]
        for _ in range(3):
            serve(cluster)
        other.silent = 40
        cluster.restart_head()
        for _ in range(30):
            serve(cluster)
        assert (canary(cluster).state, canary(cluster).step) == (CanaryState.HELD, 1)
        assert "gateway g1 has not been heard of" in canary(cluster).why
        until(cluster, CanaryState.PROMOTED)


def test_nobody_comes_and_it_holds_whatever_time_passes() -> None:
    with canaried() as cluster:
        for _ in range(300):
            cluster.step()
        held = canary(cluster)
        assert (held.state, held.step) == (CanaryState.HELD, 1)
        assert "the candidate arm has 0 of 100 sessions" in held.why


def test_what_a_gateways_process_counted_is_not_lost_with_it_nor_counted_twice() -> None:
    with canaried() as cluster:
        one = cluster.gateways["g0"]
        while shares(one) != [50]:
            cluster.step()
        cluster.order(lambda canaries: canaries.pause("try", ALICE))
        for number in range(5):
            one.book.serves(1000, 0)
            cluster.step()
            cluster.step()
            one.is_replaced(f"process {number}")
            if number == 2:
                cluster.restart_head()
        cluster.settle()
        kept = cluster.view.canaries.counted_of(canary(cluster)).counts
        assert kept.candidate.sessions == 250


def test_a_promotion_that_is_aborted_takes_its_rollout_back() -> None:
    with canaried() as cluster:
        cluster.order(lambda canaries: canaries.promote("try", ALICE))
        promoting = canary(cluster)
        assert (promoting.promoting, promoting.revision) == (True, 2)
        cluster.order(lambda canaries: canaries.abort("try", replace(ALICE, reason="no")))
        cluster.settle()
        assert cluster.view.deployments[MINI].spec.template.model == "a"
        assert canary(cluster).state is CanaryState.ABORTED
        assert cluster.ready_models() == ["a", "a", "b", "b"]


def judging(model: str) -> DeploymentSpec:
    return replace(
        spec(replicas=2, model=model),
        rollout=RolloutSettings(Update(min_ready_ms=5000, canary="try")),
    )


@contextmanager
def revising() -> Iterator[SimulatedCluster]:
    """Mini serves model a, and a canary begins with its new revision, of model b."""
    with SimulatedCluster(nodes=2, gateways=2) as cluster:
        cluster.put(judging("a"))
        cluster.settle()
        said = CanarySpec("try", Target("mini"), "", STEPS)
        assert cluster.order(lambda canaries: canaries.create(said, ALICE)).state == "waiting"
        cluster.put(judging("b"))
        yield cluster


@pytest.mark.parametrize("restarts", [False, True])
def test_a_good_revision_serves_a_share_first_and_everybody_at_the_end(restarts: bool) -> None:
    with revising() as cluster:
        seen: list[int] = []
        for second in range(200):
            if restarts and not canary(cluster).promoting and second % 19 == 11:
                cluster.restart_head()
            serve(cluster)
            seen += shares(cluster.gateways["g0"])
            if canary(cluster).state is CanaryState.PROMOTED:
                break
        assert canary(cluster).state is CanaryState.PROMOTED, canary(cluster).why
        assert list(dict.fromkeys(seen)) == [0, 50, 500, 1000]
        cluster.settle()
        mini = cluster.view.deployments[MINI]
        assert (mini.revision.number, mini.revision.state) == (2, RevisionState.SERVED)
        assert cluster.ready_models() == ["b", "b"]
        assert not shares(cluster.gateways["g0"])


def test_a_bad_revision_fails_by_its_canary_and_the_next_one_begins_another_run() -> None:
    with revising() as cluster:
        one = cluster.gateways["g0"]
        while shares(one) != [50]:
            serve(cluster)
        first = canary(cluster).uid
        serve(cluster, fails=0.5)
        until(cluster, CanaryState.ROLLED_BACK)
        cluster.step()
        assert not shares(one)
        cluster.settle()
        bad = revision_of(cluster.view.deployments[MINI].revisions, 2)
        assert bad.state is RevisionState.FAILED
        assert bad.cause.startswith("canary try rolled back: errors worse: ")
        assert cluster.ready_models() == ["a", "a"]
        cluster.put(judging("c"))
        assert (canary(cluster).state, canary(cluster).step) == (CanaryState.RUNNING, 1)
        assert canary(cluster).uid != first
        until(cluster, CanaryState.PROMOTED, seconds=200)
