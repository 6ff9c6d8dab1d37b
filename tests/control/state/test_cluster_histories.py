"""Whatever happens to machines, messages, clocks and stores: what must never be, and what comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.state.actions import Call, Stop
from penstock.control.state.cluster import ClusterView
from penstock.control.state.replica import NodeId, NodeState, ReplicaId, ReplicaState
from penstock.control.state.serving import serving
from penstock.control.state.status import DeploymentPhase, status_of
from tests.fakes.control_cluster import BROKEN, SimulatedCluster
from tests.fakes.control_values import DEADLINES, MINI, spec


def check_weights(cluster: SimulatedCluster) -> None:
    """No gateway is told to send a request to a replica that has loaded another deployment's
    weights: whatever it checks itself."""
    for gateway in cluster.gateways.values():
        uids = {d.name: d.uid for d in gateway.routes.deployments}
        for route in gateway.routes.replicas:
            agent = cluster.holder(ReplicaId(route.id))
            if agent and route.state is ReplicaState.READY:
                model = agent.models[ReplicaId(route.id)]
                assert model in cluster.models_of[uids[route.deployment]]


def guard(cluster: SimulatedCluster) -> None:
    """Checks every decision and every call of the head as it is made."""

    def no_decision_costs_capacity(old: ClusterView, new: ClusterView) -> None:
        for deployment in old.deployments.values():
            if deployment.spec.name not in new.deployments:
                continue
            before = {r.id for r in serving(old, deployment)}
            after = {r.id for r in serving(new, deployment)}
            assert len(after) >= min(deployment.spec.replicas, len(before))

    def nothing_stops_that_is_sent_to(call: Call) -> None:
        if not isinstance(call, Stop):
            return
        replica = cluster.view.replicas[call.replica_id]
        if cluster.now - replica.since < DEADLINES.leave_grace:
            for gateway in cluster.gateways.values():
                assert gateway.silent or call.replica_id not in gateway.sends_to()

    cluster.after_decisions = no_decision_costs_capacity
    cluster.before_call = nothing_stops_that_is_sent_to


def run(cluster: SimulatedCluster, steps: int) -> None:
    for _ in range(steps):
        cluster.step()
        check_weights(cluster)


@settings(deadline=None)
@given(wanted=st.integers(1, 5), nodes=st.integers(1, 3))
def test_an_update_keeps_as_many_ready_as_are_wanted_and_surges_by_one(
    wanted: int, nodes: int
) -> None:
    cluster = SimulatedCluster(nodes)
    guard(cluster)
    cluster.put(spec(replicas=wanted))
    cluster.settle()
    cluster.put(spec(replicas=wanted, model="better"))
    for _ in range(20 * wanted):
        cluster.step()
        assert len(cluster.ready()) >= wanted
        assert cluster.running() <= wanted + 1
    status = status_of(cluster.view, cluster.view.deployments[MINI])
    assert (status.phase, status.updated) == (DeploymentPhase.READY, wanted)
    assert cluster.ready_models() == ["better"] * wanted


@settings(deadline=None, max_examples=10)
@given(wanted=st.integers(1, 4))
def test_a_version_that_does_not_get_ready_takes_nothing_down_and_the_status_says_why(
    wanted: int,
) -> None:
    cluster = SimulatedCluster()
    guard(cluster)
    cluster.put(spec(replicas=wanted))
    cluster.settle()
    cluster.put(spec(replicas=wanted, model=BROKEN))
    for number in range(200):
        cluster.step()
        assert len(cluster.ready()) == wanted
        status = status_of(cluster.view, cluster.view.deployments[MINI])
        assert status.phase is DeploymentPhase.UPDATING
        assert number < 5 or "cannot load broken" in status.message
    cluster.put(spec(replicas=wanted, model="fixed"))
    cluster.settle()
    assert cluster.ready_models() == ["fixed"] * wanted
    assert status_of(cluster.view, cluster.view.deployments[MINI]).message == ""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens to the cluster, and how many seconds pass before the next."""

    what: str
    number: int
    model: str
    seconds: int


def _crash(cluster: SimulatedCluster, event: Event) -> None:
    running = sorted(i for agent in cluster.agents.values() for i in agent.processes)
    if running:
        replica_id = running[event.number % len(running)]
        agent = cluster.holder(replica_id)
        assert agent
        agent.crash(replica_id)


def _agent(cluster: SimulatedCluster, event: Event) -> NodeId:
    return sorted(cluster.agents)[event.number % len(cluster.agents)]


def _silence(cluster: SimulatedCluster, event: Event) -> None:
    cluster.agents[_agent(cluster, event)].silent = 4 * event.seconds


def _lose_all(cluster: SimulatedCluster, event: Event) -> None:
    cluster.agents[_agent(cluster, event)].processes.clear()


def _silence_gateway(cluster: SimulatedCluster, event: Event) -> None:
    cluster.gateways["g0"].silent = event.seconds


def _be_late(cluster: SimulatedCluster, event: Event) -> None:
    cluster.late.add(_agent(cluster, event))


def _cut_off(cluster: SimulatedCluster, event: Event) -> None:
    cluster.cut_off = 3 * event.seconds


def _put_anew(cluster: SimulatedCluster, event: Event) -> None:
    cluster.delete(MINI)
    cluster.put(spec(replicas=event.number % 5, model=event.model))


HAPPENINGS: dict[str, Callable[[SimulatedCluster, Event], None]] = {
    "put": lambda c, e: c.put(spec(replicas=e.number % 5, model=e.model)),
    "delete": lambda c, e: c.delete(MINI),
    "delete and put": _put_anew,
    "crash": _crash,
    "silence a node": _silence,
    "silence a gateway": _silence_gateway,
    "a late heartbeat": _be_late,
    "a node loses its replicas": _lose_all,
    "cut the head off": _cut_off,
    "restart the head": lambda c, e: c.restart_head(),
    "step the clock": lambda c, e: c.step_clock(timedelta(minutes=(-1) ** e.number * 10)),
    "nothing": lambda c, e: None,
}
EVENTS = st.builds(
    Event,
    what=st.sampled_from(sorted(HAPPENINGS)),
    number=st.integers(0, 9),
    model=st.sampled_from(["a", "b", BROKEN]),
    seconds=st.integers(0, 12),
)


@settings(max_examples=200, deadline=None)
@given(history=st.lists(EVENTS, max_size=14), wanted=st.integers(0, 4))
def test_whatever_happened_nothing_forbidden_is_done_and_the_spec_is_reached(
    history: list[Event], wanted: int
) -> None:
    cluster = SimulatedCluster(nodes=3, gateways=2)
    guard(cluster)
    cluster.step()
    for event in history:
        HAPPENINGS[event.what](cluster, event)
        run(cluster, event.seconds)
    for agent in cluster.agents.values():
        agent.silent = 0
    for gateway in cluster.gateways.values():
        gateway.silent = 0
    cluster.cut_off = 0
    cluster.put(spec(replicas=wanted, model="last"))
    cluster.settle(400)
    assert cluster.ready_models() == ["last"] * wanted
    assert cluster.running() == wanted
    assert all(len(g.sends_to()) == wanted for g in cluster.gateways.values())


def serving_cluster(*, replicas: int = 2) -> SimulatedCluster:
    """Two nodes, and one deployment that is as wanted."""
    cluster = SimulatedCluster(nodes=2, gateways=2)
    guard(cluster)
    cluster.put(spec(replicas=replicas, model="a"))
    cluster.settle()
    return cluster


def unchanged(cluster: SimulatedCluster, steps: int = 60) -> None:
    """For so long, no process ends or starts, and no gateway loses a route."""
    processes = {i for a in cluster.agents.values() for i in a.processes}
    sent_to = [g.sends_to() for g in cluster.gateways.values()]
    for _ in range(steps):
        cluster.step()
        assert {i for a in cluster.agents.values() for i in a.processes} == processes
        assert [g.sends_to() for g in cluster.gateways.values()] == sent_to


@settings(max_examples=30, deadline=None)
@given(
    silent=st.lists(st.booleans(), min_size=2, max_size=2),
    steps_back=st.integers(1, 30),
    empty=st.booleans(),
)
def test_a_head_with_an_older_or_an_empty_store_changes_nothing_until_it_takes_over(
    silent: list[bool], steps_back: int, empty: bool
) -> None:
    cluster = serving_cluster()
    cluster.put(spec(replicas=2, model="b"))
    cluster.settle()
    cluster.restart_head(steps_back=steps_back, empty=empty)
    for agent, is_silent in zip(cluster.agents.values(), silent, strict=True):
        agent.silent = 20 if is_silent else 0
    unchanged(cluster)
    assert "--take-over" in cluster.view.held
    is_known = MINI in cluster.view.deployments
    cluster.take_over()
    cluster.put(spec(replicas=2, model="c"))
    for _ in range(80):
        cluster.step()
        check_weights(cluster)
        # What the store never knew goes with the take-over, which has said so.
        assert not is_known or all(g.sends_to() for g in cluster.gateways.values())
    assert cluster.ready_models().count("c") == 2
    assert not cluster.view.held


def test_a_take_over_shows_what_the_store_does_not_know() -> None:
    cluster = serving_cluster(replicas=1)
    (replica_id,) = cluster.view.replicas
    cluster.restart_head(empty=True)
    cluster.step()
    (difference,) = cluster.take_over()
    assert f"replica {replica_id} on node n0 is of deployment 'mini'" in difference
    run(cluster, 60)
    assert [s.replica_id for s in cluster.ready()] == [replica_id]


def test_a_node_that_comes_back_brings_no_old_weights_under_a_new_name() -> None:
    cluster = serving_cluster(replicas=1)
    (first,) = cluster.view.replicas.values()
    away = cluster.agents[first.node]
    away.silent = 3000
    cluster.cut_off = 1000
    run(cluster, 1000)
    assert first.id not in cluster.view.replicas
    cluster.delete(MINI)
    cluster.put(spec(replicas=1, model="other"))
    run(cluster, 40)
    away.silent = 0
    run(cluster, 40)
    assert cluster.ready_models() == ["other"]


@pytest.mark.parametrize("minutes", [-60, -1, 1, 60])
def test_a_step_of_the_clock_changes_nothing(minutes: int) -> None:
    cluster = serving_cluster()
    cluster.step_clock(timedelta(minutes=minutes))
    unchanged(cluster)
    assert {n.state for n in cluster.view.nodes.values()} == {NodeState.READY}


def test_a_head_that_is_cut_off_from_all_replicas_takes_no_route_away() -> None:
    cluster = serving_cluster(replicas=3)
    cluster.cut_off = 300
    unchanged(cluster, 300)
    cluster.restart_head()
    cluster.cut_off = 300
    unchanged(cluster, 300)


def test_a_crash_loop_moves_to_the_node_beside_it() -> None:
    cluster = SimulatedCluster(nodes=2)
    cluster.agents[NodeId("n0")].ends_all = True
    cluster.put(spec(replicas=1, model="a"))
    run(cluster, 60)
    assert [a.processes != {} for a in cluster.agents.values()] == [False, True]
    assert cluster.ready_models() == ["a"]


def test_replicas_of_a_drained_node_move_and_none_is_missed_meanwhile() -> None:
    cluster = serving_cluster(replicas=4)
    cluster.drain_node(NodeId("n0"))
    for _ in range(120):
        cluster.step()
        assert len(cluster.ready()) >= 4
    assert not cluster.agents[NodeId("n0")].processes
    assert {r.state for r in cluster.view.replicas.values()} == {ReplicaState.READY}
