"""Heartbeats, pings and the passing of time, folded."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.control.errors import Code
from penstock.control.managers.cluster import Cluster
from penstock.control.state.cluster import ClusterView, Gateway, GatewayState
from penstock.control.state.fleet.health import STABLE_AFTER, observed, registered, swept
from penstock.control.state.fleet.liveness import (
    TIMEOUTS_ARE_DOUBT,
    Liveness,
    ObservedNode,
    PingCount,
    process_of,
)
from penstock.control.state.fleet.replica import (
    Device,
    Evidence,
    NodeIntent,
    NodeState,
    Replica,
    ReplicaState,
    ReplicaStatus,
    Resources,
)
from tests.fakes.control_errors import raises_code
from tests.fakes.control_values import (
    MINI,
    NOON,
    PATIENCE,
    SECOND,
    deployment,
    node,
    replica,
    report,
    spec,
)

N1 = node().id


def view_with(*replicas: Replica) -> ClusterView:
    view = ClusterView().with_node(node())
    for one in replicas:
        view = view.with_replica(one)
    return view


def known() -> Liveness:
    """A head that has heard the node."""
    return Liveness(nodes={N1: ObservedNode(NOON, Resources())})


def beat(view: ClusterView, *reports: ReplicaStatus, live: Liveness | None = None) -> ClusterView:
    return observed(view, live or known(), N1, Resources(), reports, NOON + SECOND)


def test_a_node_that_never_registered_is_unknown() -> None:
    with raises_code(Code.UNKNOWN_NODE, match="register first"):
        observed(ClusterView(), Liveness(), N1, Resources(), [], NOON)


def test_a_node_from_before_the_heads_restart_has_to_register_again() -> None:
    view = ClusterView().with_node(node(state=NodeState.EXPECTED))
    with raises_code(Code.UNKNOWN_NODE):
        observed(view, Liveness(), N1, Resources(), [], NOON)
    assert registered(view, Liveness(), node().facts, [], NOON).nodes[N1].state is NodeState.READY


def test_replicas_that_the_head_has_forgotten_are_taken_in() -> None:
    view = registered(ClusterView(), Liveness(), node().facts, [report("r1", digest="d4")], NOON)
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


def test_a_new_process_begins_without_evidence() -> None:
    view = view_with(replace(replica(), evidence=Evidence.GONE))
    view = beat(view, report("r1", address="r1:9001", pid=2))
    assert view.replicas[replica().id].evidence is Evidence.NONE


def test_a_replica_is_not_gone_for_ever_once_its_agent_says_that_it_is_ready() -> None:
    view = beat(view_with(replace(replica(), evidence=Evidence.GONE)), report("r1"))
    assert view.replicas[replica().id].evidence is Evidence.DOUBTED


def test_a_heartbeat_that_says_nothing_new_makes_no_new_view() -> None:
    view = beat(view_with(replica()), report("r1"))
    cluster = Cluster(view)
    live = known()
    used = Resources(memory_available_bytes=5, devices=(Device("g", memory_used_bytes=7),))
    for moment in (NOON, NOON + SECOND):
        view = observed(view, live, N1, used, [report("r1")], moment)
        cluster.replace(view)
    woken: list[int] = []
    cluster.listen(lambda: woken.append(1))
    more = replace(used, memory_available_bytes=9)
    cluster.replace(observed(view, live, N1, more, [report("r1")], NOON + 2 * SECOND))
    assert woken == []


def test_crashes_are_counted_until_a_process_stays_ready() -> None:
    crashed = replace(report("r1", ReplicaState.BACKOFF), restarts=2)
    view = beat(view_with(replica()), crashed)
    assert view.replicas[replica().id].crashes == 2
    view = beat(view, replace(report("r1"), restarts=2))
    assert swept(view, Liveness(), NOON + SECOND, PATIENCE).replicas[replica().id].crashes == 2
    later = NOON + SECOND + STABLE_AFTER
    assert swept(view, Liveness(), later, PATIENCE).replicas[replica().id].crashes == 0


@pytest.mark.parametrize(
    ("tries", "template", "left"), [(6, "", 0), (0, "", 7), (6, "of an older template", 7)]
)
def test_an_attempt_that_stays_ready_ends_the_row_of_those_in_vain_though_others_are_missing(
    tries: int, template: str, left: int
) -> None:
    in_vain = replace(deployment(spec(replicas=2)), tries=7)
    one = replace(replica(), tries=tries)
    if template:
        one = replace(one, template_digest=template)
    view = view_with(one).with_deployment(in_vain)
    soon = swept(view, Liveness(), NOON + SECOND, PATIENCE)
    assert soon.deployments[MINI].tries == 7, "it may yet fail"
    later = swept(view, Liveness(), NOON + SECOND + STABLE_AFTER, PATIENCE)
    assert later.deployments[MINI].tries == left


def test_a_deployment_learns_how_long_its_replicas_load() -> None:
    view = view_with(replica()).with_deployment(deployment())
    took = replace(report("r1"), started_at_ms=1_000, ready_at_ms=21_000)
    view = beat(view, took)
    assert view.deployments[MINI].load_ms == 20_000
    assert beat(view, replace(took, ready_at_ms=21_100)).deployments[MINI].load_ms == 20_000


def test_remote_gateways_fall_silent_and_are_forgotten() -> None:
    live = Liveness(gateways={"g": NOON})
    view = ClusterView().with_gateway(Gateway("g", GatewayState.REMOTE, reporting=True))
    view = swept(view, live, NOON + PATIENCE.silent_after + SECOND, PATIENCE)
    assert (view.gateways["g"].state, view.gateways["g"].reporting) == (GatewayState.SILENT, False)
    assert not swept(view, live, NOON + PATIENCE.forget_after + SECOND, PATIENCE).gateways


def test_an_agent_that_hands_over_gets_longer_before_its_node_is_lost() -> None:
    for intent, state in (
        (NodeIntent.SERVING, NodeState.LOST),
        (NodeIntent.HANDING_OVER, NodeState.SILENT),
    ):
        view = ClusterView().with_node(replace(node(), intent=intent))
        found = swept(view, Liveness(), NOON + timedelta(seconds=45), PATIENCE)
        assert found.nodes[N1].state is state


def test_an_agents_silence_alone_takes_no_replica_away() -> None:
    answering = replace(replica(), evidence=Evidence.ANSWERS)
    view = swept(view_with(answering), Liveness(), NOON + timedelta(hours=1), PATIENCE)
    assert view.nodes[N1].state is NodeState.LOST
    assert view.replicas[answering.id].state is ReplicaState.READY


def test_a_replica_is_lost_when_its_node_is_and_it_does_not_answer() -> None:
    gone = replace(replica(), evidence=Evidence.GONE)
    live = Liveness(nodes={N1: ObservedNode(NOON, Resources())})
    view = swept(view_with(gone), live, NOON + PATIENCE.lost_after, PATIENCE)
    assert view.nodes[N1].state is NodeState.SILENT
    assert view.replicas[gone.id].state is ReplicaState.READY
    view = swept(view, live, NOON + PATIENCE.lost_after + SECOND, PATIENCE)
    assert view.replicas[gone.id].state is ReplicaState.LOST


def test_lost_replicas_and_nodes_are_forgotten_after_a_while() -> None:
    view = swept(view_with(replica()), Liveness(), NOON + timedelta(minutes=1), PATIENCE)
    assert view.replicas
    view = swept(view, Liveness(), NOON + timedelta(minutes=12), PATIENCE)
    assert not view.replicas
    assert not view.nodes


def test_a_drain_that_the_head_did_not_ask_for_is_none_and_may_end_again() -> None:
    view = beat(view_with(replica()), report("r1", ReplicaState.DRAINING))
    assert view.replicas[replica().id].state is ReplicaState.STARTING
    assert view.replicas[replica().id].status.state is ReplicaState.DRAINING
    restarted = beat(view, report("r1", ReplicaState.BACKOFF))
    assert restarted.replicas[replica().id].state is ReplicaState.BACKOFF
    asked = beat(view_with(replica(state=ReplicaState.DRAINING)), report("r1"))
    assert asked.replicas[replica().id].state is ReplicaState.DRAINING


def test_a_draining_replica_that_the_head_has_forgotten_counts_as_not_asked_for() -> None:
    view = beat(view_with(), report("r1", ReplicaState.DRAINING))
    assert view.replicas[replica().id].state is ReplicaState.STARTING


def test_a_wedged_replica_on_a_lost_node_is_lost_once_it_answers_no_more() -> None:
    wedged = replace(replica(), evidence=Evidence.WEDGED)
    late = NOON + timedelta(hours=1)
    view = swept(view_with(wedged), Liveness(), late, PATIENCE)
    assert view.replicas[wedged.id].state is ReplicaState.READY  # it may be stopped yet
    silent = PingCount(TIMEOUTS_ARE_DOUBT, process=process_of(wedged))
    view = swept(view, Liveness(pings={wedged.id: silent}), late, PATIENCE)
    assert view.replicas[wedged.id].state is ReplicaState.LOST


def test_former_crashes_keep_no_replica_of_a_lost_node_in_the_routes() -> None:
    gone = replace(replica(), evidence=Evidence.GONE, crashes=2)
    soon = NOON + PATIENCE.lost_after + SECOND
    view = view_with(gone).with_node(node(state=NodeState.SILENT))
    assert soon - gone.since < STABLE_AFTER
    assert swept(view, Liveness(), soon, PATIENCE).replicas[gone.id].state is ReplicaState.LOST
