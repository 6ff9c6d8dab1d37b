"""Histories with one plot: updates, restarted heads, lost machines, set clocks."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.state.fleet.replica import NodeId, NodeState, ReplicaState
from penstock.control.state.rollout.status import DeploymentPhase, status_of
from penstock.control.state.routing.limits import CanaryWeight, Limits, SelectionPolicy, Sharing
from penstock.control.state.routing.program_setting import Program
from penstock.control.state.switch import Switch
from penstock.control.store.store import Key
from tests.control.cluster_laws import Laws, serving_cluster
from tests.fakes.control_values import MINI, spec
from tests.fakes.simulated_cluster import SimulatedCluster
from tests.fakes.simulated_machines import SimulatedAgent, SimulatedGateway


def unchanged(cluster: SimulatedCluster, steps: int = 60) -> None:
    """For so long, no process ends or starts, and no gateway loses a route."""
    processes = {i for a in cluster.agents.values() for i in a.processes}
    sent_to = [g.sends_to() for g in cluster.gateways.values()]
    for _ in range(steps):
        cluster.step()
        assert {i for a in cluster.agents.values() for i in a.processes} == processes
        assert [g.sends_to() for g in cluster.gateways.values()] == sent_to


LIMITS = Limits(1, 2, 3, 4, 5, 0.5, 6, 7, 8, 9, Switch.OFF, 10)
SHARINGS = (
    *(Sharing(policy, program=Program(name="mine")) for policy in SelectionPolicy),
    Sharing(canary=(CanaryWeight("elsewhere", 100),)),
)


def test_no_setting_of_limits_policy_or_canary_starts_or_stops_a_replica() -> None:
    with serving_cluster() as (cluster, laws):
        settled = spec(replicas=2, model="a")
        for name, value in asdict(LIMITS).items():
            cluster.put(replace(settled, limits=Limits(**{name: value})))
            unchanged(cluster, steps=5)
        for sharing in SHARINGS:
            cluster.put(replace(settled, limits=LIMITS, sharing=sharing))
            unchanged(cluster, steps=5)
        deployment = cluster.view.deployments[MINI]
        assert (deployment.spec.limits, deployment.spec.sharing) == (LIMITS, SHARINGS[-1])
        assert (deployment.generation > 10, deployment.template_generation) == (True, 1)
        laws.check()


@settings(max_examples=25)
@given(wanted=st.integers(1, 5), nodes=st.integers(1, 3), lag=st.integers(0, 7))
def test_an_update_keeps_as_many_ready_as_are_wanted_and_surges_by_one(
    wanted: int, nodes: int, lag: int
) -> None:
    with serving_cluster(replicas=wanted, nodes=nodes) as (cluster, laws):
        cluster.gateways["g1"].lag = lag
        cluster.put(spec(replicas=wanted, model="better"))
        for _ in range((20 + lag) * wanted):
            laws.run(1)
            assert len(cluster.ready()) >= wanted
            assert all(len(cluster.served_by(g)) >= wanted for g in cluster.gateways.values())
            assert cluster.running() <= wanted + 1
        status = status_of(cluster.view, cluster.view.deployments[MINI])
        assert (status.phase, status.updated) == (DeploymentPhase.READY, wanted)
        assert cluster.ready_models() == ["better"] * wanted


@settings(max_examples=15)
@given(
    silent=st.lists(st.booleans(), min_size=2, max_size=2),
    steps_back=st.integers(1, 30),
    empty=st.booleans(),
)
def test_a_head_with_an_older_or_an_empty_store_changes_nothing_until_it_takes_over(
    silent: list[bool], steps_back: int, empty: bool
) -> None:
    with serving_cluster() as (cluster, laws):
        cluster.put(spec(replicas=2, model="b"))
        cluster.settle()
        cluster.restart_head(steps_back=steps_back, empty=empty)
        for agent, is_silent in zip(cluster.agents.values(), silent, strict=True):
            agent.silent = 20 if is_silent else 0
        unchanged(cluster)
        assert "--take-over" in (cluster.view.held or cluster.why_refused())
        is_known = MINI in cluster.view.deployments
        cluster.take_over()
        laws.broken()  # what the store never knew goes with the take-over, which has said so
        cluster.put(spec(replicas=2, model="c"))
        for _ in range(100):
            laws.run(1)
            assert not is_known or all(g.sends_to() for g in cluster.gateways.values())
        assert cluster.ready_models().count("c") == 2
        assert not cluster.view.held


@settings(max_examples=25)
@given(
    silent=st.lists(st.integers(0, 40), max_size=6),
    restarts=st.booleans(),
    comes_first=st.booleans(),
)
def test_a_second_agent_of_a_nodes_id_takes_no_replica_and_no_route_away(
    silent: list[int], restarts: bool, comes_first: bool
) -> None:
    with serving_cluster(nodes=2) as (cluster, _):
        node_id = NodeId("n0")
        first, second = cluster.agents[node_id], SimulatedAgent(instance="second")
        cluster.seconds.append((node_id, second))
        for steps in (0, *silent):
            first.silent = steps
            if restarts:
                cluster.restart_head()
            second.silent = 0 if comes_first else 2
            unchanged(cluster, steps + 10)
            assert steps or cluster.view.nodes[node_id].facts.instance == "first"
            second.silent = 20  # so that the first is heard again where it was followed
            unchanged(cluster, 10)


def test_an_agent_that_follows_one_that_is_gone_is_let_in_and_the_first_is_refused() -> None:
    with serving_cluster(nodes=1) as (cluster, _):
        node_id = NodeId("n0")
        cluster.agents[node_id].silent = 20
        cluster.seconds.append((node_id, SimulatedAgent(instance="second")))
        unchanged(cluster, 30)
        assert cluster.view.nodes[node_id].facts.instance == "second"


def test_a_take_over_shows_what_the_store_does_not_know() -> None:
    with serving_cluster(replicas=1) as (cluster, laws):
        (replica_id,) = cluster.view.replicas
        cluster.restart_head(empty=True)
        cluster.step()
        (difference,) = cluster.take_over()
        assert f"replica {replica_id} on node n0 is of deployment 'mini'" in difference
        laws.broken()
        cluster.settle()
        assert [s.replica_id for s in cluster.ready()] == [replica_id]


def test_a_node_that_comes_back_brings_no_old_weights_under_a_new_name() -> None:
    with serving_cluster(replicas=1) as (cluster, laws):
        (first,) = cluster.view.replicas.values()
        away = cluster.agents[first.node]
        away.silent, cluster.cut_off = 3000, 1000
        laws.run(1000)
        assert first.id not in cluster.view.replicas
        cluster.delete(MINI)
        cluster.put(spec(replicas=1, model="other"))
        laws.run(40)
        away.silent = 0
        laws.run(40)
        assert cluster.ready_models() == ["other"]


@pytest.mark.parametrize("minutes", [-60, -1, 1, 60])
def test_a_step_of_the_clock_changes_nothing(minutes: int) -> None:
    with serving_cluster() as (cluster, _):
        cluster.step_clock(timedelta(minutes=minutes))
        for _ in range(60):
            unchanged(cluster, 1)
            assert {n.state for n in cluster.view.nodes.values()} == {NodeState.READY}


@pytest.mark.parametrize("minutes", [-60, -1, 1, 60])
def test_a_head_that_starts_again_on_another_clock_changes_nothing(minutes: int) -> None:
    with serving_cluster() as (cluster, _):
        cluster.step_clock(timedelta(minutes=minutes))
        cluster.restart_head()
        unchanged(cluster)


def test_a_head_that_is_cut_off_from_all_replicas_takes_no_route_away() -> None:
    with serving_cluster(replicas=3) as (cluster, _):
        cluster.cut_off = 300
        unchanged(cluster, 300)
        cluster.restart_head()
        cluster.cut_off = 300
        unchanged(cluster, 300)


def test_nodes_that_are_silent_for_long_while_their_replicas_answer_lose_no_route() -> None:
    with serving_cluster() as (cluster, _):
        for agent in cluster.agents.values():
            agent.silent = 300
        unchanged(cluster, 200)
        assert {n.state for n in cluster.view.nodes.values()} == {NodeState.LOST}


def test_a_deployment_that_cannot_be_read_any_more_keeps_its_routes() -> None:
    with serving_cluster() as (cluster, _):
        cluster.restart_head(unreadable=Key("deployment", MINI))
        unchanged(cluster)
        assert MINI not in cluster.view.deployments


def test_a_gateway_that_begins_beside_a_head_with_an_older_store_is_told_nothing() -> None:
    with serving_cluster(gateways=1) as (cluster, _):
        backup = cluster.stored_changes
        cluster.put(spec(replicas=2, model="b"))
        cluster.settle()
        gateway = cluster.gateways["g0"] = SimulatedGateway()
        cluster.restart_head(steps_back=cluster.stored_changes - backup)
        for agent in cluster.agents.values():
            agent.silent = 2
        for _ in range(30):
            cluster.step()
            assert not gateway.sends_to()
        assert cluster.view.held


@pytest.mark.parametrize("silent", [0, 20])
def test_a_head_that_was_away_tells_no_route_to_a_replica_that_went_meanwhile(silent: int) -> None:
    with serving_cluster() as (cluster, _):
        agent = cluster.agents[NodeId("n0")]
        (gone,) = agent.processes
        cluster.stop_head()
        agent.processes.clear()
        agent.silent = silent
        told = [g.version for g in cluster.gateways.values()]
        cluster.start_head()
        for _ in range(20):
            cluster.step()
            for gateway, before in zip(cluster.gateways.values(), told, strict=True):
                assert gateway.version == before or gone not in gateway.sends_to()


@pytest.mark.parametrize("lost", ["n0", "n1"])
@pytest.mark.parametrize("silent", [0, 20])
def test_a_head_that_was_away_ends_no_replica_that_serves_in_place_of_one_that_went(
    lost: str, silent: int
) -> None:
    with serving_cluster() as (cluster, _):
        cluster.stop_head()
        cluster.put(spec(replicas=1, model="a"))  # the last that it stored before its end
        agent = cluster.agents[NodeId(lost)]
        agent.processes.clear()
        agent.silent = silent
        (left,) = cluster.ready()
        cluster.start_head()
        for _ in range(60):
            cluster.step()
            assert left in cluster.ready()


@pytest.mark.parametrize("minutes", [-60, 60])
def test_an_update_goes_on_under_a_head_that_starts_again_on_another_clock(minutes: int) -> None:
    with serving_cluster() as (cluster, laws):
        cluster.put(spec(replicas=2, model="b"))
        laws.run(4)
        assert "b" in cluster.ready_models()
        cluster.step_clock(timedelta(minutes=minutes))
        cluster.restart_head()
        laws.run(60)
        assert cluster.ready_models() == ["b", "b"]


def test_a_deployment_that_is_wanted_again_at_once_may_have_lost_what_nobody_wanted() -> None:
    with SimulatedCluster(nodes=2, gateways=2) as cluster:
        laws = Laws(cluster)
        for replicas in (1, 0, 1):
            cluster.put(spec(replicas=replicas, model="a"))
            laws.run(12 if replicas else 0)
        assert cluster.ready_models() == ["a"]


def test_a_crash_loop_moves_to_the_node_beside_it() -> None:
    with SimulatedCluster(nodes=2) as cluster:
        cluster.agents[NodeId("n0")].ends_all = True
        cluster.put(spec(replicas=1, model="a"))
        Laws(cluster).run(60)
        assert [a.processes != {} for a in cluster.agents.values()] == [False, True]
        assert cluster.ready_models() == ["a"]


def test_replicas_of_a_drained_node_move_and_none_is_missed_meanwhile() -> None:
    with serving_cluster(replicas=4) as (cluster, laws):
        cluster.drain_node(NodeId("n0"))
        for _ in range(120):
            laws.run(1)
            assert len(cluster.ready()) >= 4
        assert not cluster.agents[NodeId("n0")].processes
        assert {r.state for r in cluster.view.replicas.values()} == {ReplicaState.READY}
