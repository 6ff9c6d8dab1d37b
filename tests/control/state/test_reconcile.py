"""The plan: where it leads, step by step, and what it never does on the way."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.state.cluster import ClusterView
from penstock.control.state.deployment import created
from penstock.control.state.reconcile import Drain, Place, Start, Stop, plan, serves
from penstock.control.state.replica import Evidence, NodeState, ReplicaState
from penstock.control.state.status import DeploymentPhase, status_of
from tests.fakes.control_cluster import BROKEN, SimulatedCluster
from tests.fakes.control_values import DEADLINES, MINI, NOON, UID, node, replica, spec


def view_with(*replicas_: object, wanted: int = 1) -> ClusterView:
    view = (
        ClusterView()
        .with_node(node())
        .with_deployment(created(spec(replicas=wanted), NOON, uid=UID))
    )
    for one in replicas_:
        view = view.with_replica(one)  # type: ignore[arg-type]
    return view


def test_missing_replicas_go_to_the_least_loaded_nodes() -> None:
    view = view_with(wanted=3).with_node(node("n2"))
    view = view.with_replica(replica("other", node_id="n1", deployment="else"))
    view = view.with_deployment(created(spec(name="else"), NOON, uid=UID))
    assert plan(view, NOON, DEADLINES) == [
        Place(MINI, node("n2").id),
        Place(MINI, node("n1").id),
        Place(MINI, node("n2").id),
    ]


def test_nothing_is_placed_on_a_node_that_is_not_ready() -> None:
    for state in (NodeState.EXPECTED, NodeState.SILENT, NodeState.LOST):
        view = ClusterView().with_node(node(state=state))
        view = view.with_deployment(created(spec(), NOON, uid=UID))
        assert plan(view, NOON, DEADLINES) == []


def test_a_pending_replica_is_asked_for_until_its_agent_answers() -> None:
    pending = replica(state=ReplicaState.PENDING)
    assert plan(view_with(pending), NOON, DEADLINES) == [Start(pending.id)]
    assert plan(view_with(replica(state=ReplicaState.STARTING)), NOON, DEADLINES) == []


def test_a_pending_replica_of_an_older_template_is_never_started() -> None:
    pending = replica("old", ReplicaState.PENDING, digest="old")
    actions = plan(view_with(pending), NOON, DEADLINES)
    assert [a.replica_id for a in actions if isinstance(a, Drain)] == ["old"]
    assert not [a for a in actions if isinstance(a, Start)]


def test_a_draining_replica_is_stopped_until_its_agent_drains_it() -> None:
    draining = replace(replica("old"), state=ReplicaState.DRAINING)
    assert plan(view_with(draining, replica()), NOON, DEADLINES) == [Stop(draining.id)]
    obeyed = replace(draining, status=replace(draining.status, state=ReplicaState.DRAINING))
    assert plan(view_with(obeyed, replica()), NOON, DEADLINES) == []


def test_scaling_down_drains_those_that_do_not_serve_first() -> None:
    view = view_with(replica("a"), replica("b", ReplicaState.STARTING), replica("c"), wanted=2)
    drains = [a for a in plan(view, NOON, DEADLINES) if isinstance(a, Drain)]
    assert [a.replica_id for a in drains] == ["b"]


def test_replicas_of_a_deleted_deployment_drain() -> None:
    view = view_with(replica()).without_deployment(MINI)
    (action,) = plan(view, NOON, DEADLINES)
    assert isinstance(action, Drain)


def test_a_lost_replica_is_replaced() -> None:
    view = view_with(replica(state=ReplicaState.LOST)).with_node(node("n2"))
    assert [type(a) for a in plan(view, NOON, DEADLINES)] == [Place]


def test_a_failed_replica_is_tried_anew_only_after_a_while() -> None:
    failed = replica(state=ReplicaState.FAILED)
    view = view_with(failed)
    assert plan(view, NOON, DEADLINES) == []
    later = NOON + DEADLINES.retry_failed
    (action,) = plan(view, later, DEADLINES)
    assert isinstance(action, Drain)
    assert "failed" in action.trouble


def test_a_replica_that_is_not_ready_in_time_is_tried_anew_and_says_so() -> None:
    view = view_with(replica(state=ReplicaState.STARTING))
    assert plan(view, NOON + DEADLINES.ready - timedelta(seconds=1), DEADLINES) == []
    (action,) = plan(view, NOON + DEADLINES.ready, DEADLINES)
    assert isinstance(action, Drain)
    assert "not ready after 600 s" in action.trouble


def test_a_replica_at_whose_address_nothing_listens_does_not_serve() -> None:
    assert not serves(replace(replica(), evidence=Evidence.GONE))
    assert serves(replace(replica(), evidence=Evidence.DOUBTED))


@settings(deadline=None)
@given(wanted=st.integers(1, 5), nodes=st.integers(1, 3))
def test_an_update_keeps_as_many_ready_as_are_wanted_and_surges_by_one(
    wanted: int, nodes: int
) -> None:
    cluster = SimulatedCluster(nodes)
    cluster.put(spec(replicas=wanted))
    cluster.settle()
    cluster.put(spec(replicas=wanted, model="better"))
    for _ in range(30 * wanted):
        cluster.step()
        assert len(cluster.ready()) >= wanted
        assert sum(len(processes) for processes in cluster.processes.values()) <= wanted + 1
    status = status_of(cluster.view, cluster.view.deployments[MINI])
    assert (status.phase, status.updated) == (DeploymentPhase.READY, wanted)
    assert {s.log_path for s in cluster.ready()} == {"better"}


@settings(deadline=None)
@given(wanted=st.integers(1, 4))
def test_a_version_that_does_not_get_ready_takes_nothing_down_and_the_status_says_why(
    wanted: int,
) -> None:
    cluster = SimulatedCluster()
    cluster.put(spec(replicas=wanted))
    cluster.settle()
    cluster.put(spec(replicas=wanted, model=BROKEN))
    for number in range(200):
        cluster.step()
        assert len(cluster.ready()) == wanted
        status = status_of(cluster.view, cluster.view.deployments[MINI])
        assert status.phase is DeploymentPhase.UPDATING
        assert number < 5 or "cannot load broken" in status.message
    crashed = cluster.ready()[0].replica_id
    cluster.crash(crashed)
    for _ in range(5):
        cluster.step()
    assert crashed in {s.replica_id for s in cluster.ready()}
    cluster.put(spec(replicas=wanted, model="fixed"))
    cluster.settle()
    assert [s.log_path for s in cluster.ready()] == ["fixed"] * wanted
    assert status_of(cluster.view, cluster.view.deployments[MINI]).message == ""


steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 4), st.sampled_from(["a", "b", BROKEN])),
        st.tuples(st.just("crash"), st.integers(0, 9), st.just("")),
        st.tuples(st.just("delete"), st.just(0), st.just("")),
        st.tuples(st.just("agent lost its replicas"), st.integers(0, 2), st.just("")),
        st.tuples(st.just("pass"), st.integers(1, 5), st.just("")),
    ),
    max_size=12,
)


@settings(max_examples=200, deadline=None)
@given(history=steps, wanted=st.integers(0, 4))
def test_whatever_happened_the_spec_is_reached(
    history: list[tuple[str, int, str]], wanted: int
) -> None:
    cluster = SimulatedCluster(nodes=3)
    for what, number, model in history:
        if what == "put":
            cluster.put(spec(replicas=number, model=model))
        elif what == "delete":
            cluster.view = cluster.view.without_deployment(MINI)
        elif what == "crash" and cluster.view.replicas:
            ids = sorted(cluster.view.replicas)
            cluster.crash(ids[number % len(ids)])
        elif what == "agent lost its replicas":
            cluster.processes[node(f"n{number}").id].clear()
        else:
            for _ in range(number):
                cluster.step()
    cluster.put(spec(replicas=wanted, model="last"))
    cluster.settle(200)
    for _ in range(5):
        cluster.step()
    assert [s.log_path for s in cluster.ready()] == ["last"] * wanted
    assert sum(len(processes) for processes in cluster.processes.values()) == wanted
