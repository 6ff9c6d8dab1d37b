"""What the head's own calls prove, and what they do not."""

from __future__ import annotations

from dataclasses import replace

from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.liveness import PingCount
from penstock.control.state.fleet.pings import Ping, deeply_checked, pinged
from penstock.control.state.fleet.replica import Evidence, NodeState, Replica
from penstock.control.state.fleet.serving import serving
from penstock.control.state.rollout.deployment import created
from tests.fakes.control_values import MINI, NOON, UID, node, replica, spec


def view_with(*replicas: Replica, node_state: NodeState = NodeState.READY) -> ClusterView:
    view = ClusterView().with_node(node(state=node_state))
    view = view.with_deployment(created(spec(replicas=3), NOON, uid=UID))
    for one in replicas:
        view = view.with_replica(one)
    return view


def ping(view: ClusterView, *results: Ping) -> Evidence:
    count = PingCount()
    for result in results:
        view, count = pinged(view, count, replica().id, replica().status.address, result, NOON)
    return view.replicas[replica().id].evidence


def test_a_refused_replica_is_gone_only_if_no_agent_vouches_for_it() -> None:
    refused = (Ping.REFUSED, Ping.REFUSED)
    for state, found in (
        (NodeState.READY, Evidence.DOUBTED),
        (NodeState.EXPECTED, Evidence.GONE),
        (NodeState.SILENT, Evidence.GONE),
    ):
        assert ping(view_with(replica(), node_state=state), *refused) is found


def test_one_failed_ping_proves_nothing() -> None:
    for result in (Ping.REFUSED, Ping.TIMED_OUT):
        for state in (NodeState.READY, NodeState.EXPECTED):
            assert ping(view_with(replica(), node_state=state), result) is Evidence.NONE


def test_no_answer_is_no_refusal_however_often() -> None:
    view = view_with(replica(), node_state=NodeState.EXPECTED)
    assert ping(view, *[Ping.TIMED_OUT] * 2) is Evidence.NONE
    assert ping(view, *[Ping.TIMED_OUT] * 9) is Evidence.DOUBTED
    assert ping(view, *[Ping.REFUSED, Ping.TIMED_OUT] * 9) is Evidence.DOUBTED


def test_an_answer_ends_all_doubt() -> None:
    view = view_with(replace(replica(), evidence=Evidence.DOUBTED))
    assert ping(view, Ping.TIMED_OUT, Ping.TIMED_OUT, Ping.ANSWERED) is Evidence.ANSWERS


def test_a_ping_to_a_former_address_says_nothing() -> None:
    view = view_with(replica())
    count = PingCount(2, 1)
    after = pinged(view, count, replica().id, "elsewhere:1", Ping.REFUSED, NOON)
    assert after == (view, count)


def test_what_a_former_process_did_not_answer_counts_no_more() -> None:
    view, before = view_with(replica(), node_state=NodeState.EXPECTED), PingCount(2, 2, ("a", 1))
    view, count = pinged(view, before, replica().id, replica().status.address, Ping.REFUSED, NOON)
    assert (count.failed, count.refused) == (1, 1)
    assert view.replicas[replica().id].evidence is Evidence.NONE


def test_pings_alone_never_take_the_last_replica() -> None:
    doubts = (Evidence.DOUBTED, Evidence.GONE, Evidence.DOUBTED)
    three = [replace(replica(n), evidence=e) for n, e in zip("abc", doubts, strict=True)]
    view = view_with(*three)
    assert len(serving(view, view.deployments[MINI])) == 3
    view = view.with_replica(replace(replica("b"), evidence=Evidence.ANSWERS))
    assert [r.id for r in serving(view, view.deployments[MINI])] == ["b"]


def test_a_replica_that_generates_nothing_twice_is_wedged_until_it_does() -> None:
    view, address = view_with(replica()), replica().status.address
    view = deeply_checked(view, replica().id, address, 1, NOON)
    assert view.replicas[replica().id].evidence is Evidence.NONE
    view = deeply_checked(view, replica().id, address, 2, NOON)
    assert ping(view, Ping.ANSWERED) is Evidence.WEDGED
    view = deeply_checked(view, replica().id, address, 0, NOON)
    assert view.replicas[replica().id].evidence is Evidence.ANSWERS
