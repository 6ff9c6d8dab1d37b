"""Histories of deployments whose replicas sleep: who wakes, who is ended, what goes wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.control.state.fleet.replica import ReplicaState
from penstock.control.state.rollout.deployment import DeploymentSpec
from penstock.control.state.rollout.template import Sleep
from tests.control.cluster_laws import Laws
from tests.fakes.control_values import MINI, spec
from tests.fakes.simulated_cluster import SimulatedCluster

ASLEEP = ReplicaState.ASLEEP


def sleepy(
    replicas: int, model: str = "a", sleep: Sleep = Sleep.WEIGHTS_IN_MEMORY
) -> DeploymentSpec:
    made = spec(replicas=replicas, model=model)
    return replace(made, template=replace(made.template, sleep=sleep))


def served(cluster: SimulatedCluster, laws: Laws, replicas: int) -> None:
    laws.run(1)
    cluster.put(sleepy(replicas))
    cluster.settle()


def states(cluster: SimulatedCluster) -> list[ReplicaState]:
    return sorted(each.state for each in cluster.view.replicas.values())


def reasons(cluster: SimulatedCluster) -> list[str]:
    return [kept.event.reason for kept in cluster.events()]


def test_scaled_to_nothing_and_back_the_same_processes_serve_and_gateways_hear_that_they_woke() -> (
    None
):
    with SimulatedCluster(nodes=2, gateways=2) as cluster:
        laws = Laws(cluster)
        served(cluster, laws, 2)
        first = {s.replica_id: s.address for s in cluster.ready()}
        for turn in (1, 2):
            cluster.put(sleepy(0))
            laws.run(30)
            assert states(cluster) == [ASLEEP, ASLEEP]
            assert all(not gateway.sends_to() for gateway in cluster.gateways.values())
            cluster.put(sleepy(2))
            laws.run(30)
            assert {s.replica_id: s.address for s in cluster.ready()} == first
            for gateway in cluster.gateways.values():
                assert {r.wakes for r in gateway.routes.replicas} == {turn}
        assert {"ReplicaAsleep", "ReplicaWaking"} <= set(reasons(cluster))


@pytest.mark.parametrize("change", ["model", "off", "delete"])
def test_one_that_will_never_be_woken_is_ended(change: str) -> None:
    with SimulatedCluster(nodes=1, gateways=1) as cluster:
        laws = Laws(cluster)
        served(cluster, laws, 1)
        cluster.put(sleepy(0))
        laws.run(30)
        assert states(cluster) == [ASLEEP]
        match change:
            case "model":
                cluster.put(sleepy(0, model="b"))
            case "off":
                cluster.put(sleepy(0, sleep=Sleep.OFF))
            case "delete":
                cluster.delete(MINI)
        laws.run(40)
        assert cluster.running() == 0


def test_an_agent_that_knows_no_sleep_ends_what_it_is_to_put_to_sleep() -> None:
    with SimulatedCluster(nodes=1, gateways=1) as cluster:
        laws = Laws(cluster)
        served(cluster, laws, 1)
        cluster.agents[next(iter(cluster.agents))].sleepless = True
        cluster.put(sleepy(0))
        laws.run(30)
        assert cluster.running() == 0
        cluster.put(sleepy(1))
        laws.run(30)
        assert len(cluster.ready()) == 1


def test_one_whose_machine_is_gone_is_not_waited_for() -> None:
    with SimulatedCluster(nodes=2, gateways=1) as cluster:
        laws = Laws(cluster)
        served(cluster, laws, 1)
        cluster.put(sleepy(0))
        laws.run(30)
        (sleeper,) = cluster.view.replicas.values()
        cluster.agents[sleeper.node].die(200)
        laws.broken()
        laws.run(60)
        assert states(cluster) == [ReplicaState.LOST]
        cluster.put(sleepy(1))
        laws.run(30)
        assert len(cluster.ready()) == 1


def test_one_that_wakes_wrongly_is_started_again_and_only_then_sent_to() -> None:
    with SimulatedCluster(nodes=1, gateways=1) as cluster:
        laws = Laws(cluster)
        served(cluster, laws, 1)
        (agent,) = cluster.agents.values()
        agent.wakes_wrong = True
        cluster.put(sleepy(0))
        laws.run(30)
        cluster.put(sleepy(1))
        laws.run(30)
        (status,) = cluster.ready()
        assert (status.wakes, status.restarts) == (0, 1)
        assert "ReplicaWokeWrong" in reasons(cluster)


@pytest.mark.parametrize("late", [False, True])
def test_a_head_that_was_restarted_meanwhile_wakes_what_sleeps(late: bool) -> None:
    with SimulatedCluster(nodes=1, gateways=1) as cluster:
        laws = Laws(cluster)
        served(cluster, laws, 1)
        (first,) = cluster.ready()
        cluster.put(sleepy(0))
        laws.run(2 if late else 30)
        cluster.restart_head()
        laws.run(30)
        assert states(cluster) == [ASLEEP]
        cluster.put(sleepy(1))
        laws.run(2)
        if late:
            cluster.late.update(cluster.agents)
        laws.run(30)
        assert [s.replica_id for s in cluster.ready()] == [first.replica_id]
