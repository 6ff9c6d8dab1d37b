"""Heartbeats, pings and the passing of time, folded."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.control.errors import UnknownNode
from penstock.control.state.cluster import ClusterView
from penstock.control.state.health import Ping, heard, pinged, registered, swept
from penstock.control.state.replica import (
    Evidence,
    NodeState,
    Replica,
    ReplicaState,
    ReplicaStatus,
    Resources,
)
from tests.fakes.control_values import NOON, PATIENCE, SECOND, node, replica, report

N1 = node().id


def view_with(*replicas: Replica) -> ClusterView:
    view = ClusterView().with_node(node())
    for one in replicas:
        view = view.with_replica(one)
    return view


def beat(view: ClusterView, *reports: ReplicaStatus) -> ClusterView:
    return heard(view, N1, Resources(), reports, NOON + SECOND)


def ping(view: ClusterView, result: Ping, times: int = 1) -> Replica:
    for _ in range(times):
        view = pinged(view, replica().id, replica().status.address, result, NOON)
    return view.replicas[replica().id]


def test_a_node_that_never_registered_is_unknown() -> None:
    with pytest.raises(UnknownNode, match="register first"):
        heard(ClusterView(), N1, Resources(), [], NOON)


def test_a_node_from_before_the_heads_restart_has_to_register_again() -> None:
    view = ClusterView().with_node(node(state=NodeState.EXPECTED))
    with pytest.raises(UnknownNode):
        heard(view, N1, Resources(), [], NOON)
    assert registered(view, node().facts, [], NOON).nodes[N1].state is NodeState.READY


def test_replicas_that_the_head_has_forgotten_are_taken_in() -> None:
    view = registered(ClusterView(), node().facts, [report("r1", digest="d4")], NOON)
    (taken,) = view.replicas.values()
    assert (taken.node, taken.template_digest, taken.state) == (N1, "d4", ReplicaState.READY)


def test_a_heartbeat_moves_a_replica() -> None:
    view = beat(view_with(replica(state=ReplicaState.STARTING)), report("r1"))
    assert view.replicas[replica().id].state is ReplicaState.READY


def test_a_heartbeat_takes_no_replica_out_of_draining() -> None:
    view = beat(view_with(replica(state=ReplicaState.DRAINING)), report("r1"))
    assert view.replicas[replica().id].state is ReplicaState.DRAINING


def test_one_heartbeat_without_a_replica_proves_nothing_two_do() -> None:
    view = beat(view_with(replica()))
    assert view.replicas[replica().id].state is ReplicaState.READY
    assert beat(view).replicas[replica().id].state is ReplicaState.LOST
    assert beat(beat(view, report("r1"))).replicas[replica().id].state is ReplicaState.READY


def test_a_drained_replica_that_its_agent_no_longer_names_is_gone() -> None:
    assert not beat(beat(view_with(replica(state=ReplicaState.DRAINING)))).replicas


def test_a_pending_replica_is_not_lost_by_heartbeats_without_it() -> None:
    view = beat(beat(view_with(replica(state=ReplicaState.PENDING))))
    assert view.replicas[replica().id].state is ReplicaState.PENDING


def test_a_lost_replica_that_is_reported_again_is_back() -> None:
    view = beat(view_with(replica(state=ReplicaState.LOST)), report("r1"))
    assert view.replicas[replica().id].state is ReplicaState.READY


def test_replicas_of_other_nodes_are_not_missed() -> None:
    elsewhere = replica("r2", node_id="n2")
    assert beat(beat(view_with(elsewhere))).replicas[elsewhere.id].state is ReplicaState.READY


def test_a_refusal_counts_at_once_only_for_a_replica_that_never_answered() -> None:
    view = view_with(replica())
    assert ping(view, Ping.REFUSED).evidence is Evidence.GONE
    answered = view_with(replace(replica(), evidence=Evidence.ANSWERS))
    assert ping(answered, Ping.REFUSED).evidence is Evidence.ANSWERS
    assert ping(answered, Ping.REFUSED, times=2).evidence is Evidence.GONE


def test_timeouts_cast_doubt_only_in_a_row() -> None:
    view = view_with(replace(replica(), evidence=Evidence.ANSWERS))
    assert ping(view, Ping.TIMED_OUT, times=2).evidence is Evidence.ANSWERS
    assert ping(view, Ping.TIMED_OUT, times=3).evidence is Evidence.DOUBTED
    doubted = view_with(replace(replica(), evidence=Evidence.DOUBTED, failed_pings=9))
    assert ping(doubted, Ping.ANSWERED).failed_pings == 0


def test_a_ping_to_a_former_address_says_nothing() -> None:
    view = view_with(replica())
    assert pinged(view, replica().id, "elsewhere:1", Ping.REFUSED, NOON) is view


def test_a_new_process_begins_without_evidence() -> None:
    view = view_with(replace(replica(), evidence=Evidence.GONE, failed_pings=5))
    view = beat(view, report("r1", address="r1:9001", pid=2))
    assert view.replicas[replica().id].evidence is Evidence.NONE


def test_an_agents_silence_alone_takes_no_replica_away() -> None:
    answering = replace(replica(), evidence=Evidence.ANSWERS)
    view = swept(view_with(answering), NOON + timedelta(hours=1), PATIENCE)
    assert view.nodes[N1].state is NodeState.LOST
    assert view.replicas[answering.id].state is ReplicaState.READY


def test_a_replica_is_lost_when_its_node_is_and_it_does_not_answer() -> None:
    gone = replace(replica(), evidence=Evidence.GONE)
    view = swept(view_with(gone), NOON + PATIENCE.lost_after, PATIENCE)
    assert view.nodes[N1].state is NodeState.SILENT
    assert view.replicas[gone.id].state is ReplicaState.READY
    view = swept(view, NOON + PATIENCE.lost_after + SECOND, PATIENCE)
    assert view.replicas[gone.id].state is ReplicaState.LOST


def test_lost_replicas_and_nodes_are_forgotten_after_a_while() -> None:
    view = swept(view_with(replica()), NOON + timedelta(minutes=1), PATIENCE)
    assert view.replicas
    view = swept(view, NOON + timedelta(minutes=12), PATIENCE)
    assert not view.replicas
    assert not view.nodes
