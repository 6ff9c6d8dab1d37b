"""The plan: where it leads, step by step, and what it never does on the way."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import datetime, timedelta

from penstock.control.state.cluster import (
    ClusterView,
    Gateway,
    GatewayReport,
    GatewayState,
    Published,
)
from penstock.control.state.fleet.replica import (
    Evidence,
    NodeIntent,
    NodeState,
    Replica,
    ReplicaState,
)
from penstock.control.state.rollout.actions import (
    Abandon,
    Drain,
    Place,
    Settle,
    Start,
    Stop,
)
from penstock.control.state.rollout.deployment import Departed, changed, created, restarted
from penstock.control.state.rollout.failing import CRASH_LOOP
from penstock.control.state.rollout.placing import applied, specified, stop_taken
from penstock.control.state.rollout.reconcile import calls, decisions, plan
from penstock.control.state.rollout.revision import Origin
from tests.fakes.control_values import (
    DEADLINES,
    MIN_READY,
    MINI,
    NOON,
    SECOND,
    UID,
    in_service,
    node,
    replica,
    report,
    spec,
)

PROVEN = NOON - timedelta(minutes=1)


def view_with(*replicas_: object, wanted: int = 1) -> ClusterView:
    view = (
        ClusterView()
        .with_node(node())
        .with_deployment(in_service(created(spec(replicas=wanted), NOON, uid=UID)))
    )
    for one in replicas_:
        view = view.with_replica(one)  # type: ignore[arg-type]
    return view


def test_missing_replicas_go_to_the_least_loaded_nodes() -> None:
    view = view_with(wanted=3).with_node(node("n2"))
    view = view.with_replica(replica("other", node_id="n1", deployment="else"))
    view = view.with_deployment(in_service(created(spec(name="else"), NOON, uid=UID)))
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
    published = Published(3, frozenset({"r1"}), {"old": 3})
    view = replace(view_with(draining, replica()), published=published)
    assert plan(view, NOON, DEADLINES) == [Stop(draining.id)]
    assert plan(stop_taken(view, draining.id), NOON, DEADLINES) == []


def test_a_draining_replica_is_stopped_when_every_gateway_routes_without_it_or_took_too_long() -> (
    None
):
    draining = replace(replica("old"), state=ReplicaState.DRAINING)
    view = view_with(draining, replica())
    stop = [Stop(draining.id)]
    assert calls(view, NOON, DEADLINES) == []  # no snapshot says so yet
    view = replace(view, published=Published(3, frozenset({"r1"}), {"old": 3}))
    behind = Gateway("g", GatewayState.REMOTE, report=GatewayReport(NOON, 2), reporting=True)
    assert calls(view.with_gateway(behind), NOON, DEADLINES) == []
    there = replace(behind, report=GatewayReport(NOON, 3))
    assert calls(view.with_gateway(there), NOON, DEADLINES) == stop
    assert calls(view.with_gateway(replace(behind, reporting=False)), NOON, DEADLINES) == stop
    adopted = Gateway("g", GatewayState.READY)  # by a head that was just started
    assert calls(view.with_gateway(adopted), NOON, DEADLINES) == []
    ended = replace(adopted, state=GatewayState.BACKOFF)
    assert calls(view.with_gateway(ended), NOON, DEADLINES) == stop
    late = NOON + DEADLINES.leave_grace
    for each in (behind, adopted):
        assert calls(view.with_gateway(each), late, DEADLINES) == stop


def test_a_head_that_succeeds_another_gives_gateways_that_it_never_heard_their_time() -> None:
    draining = replace(replica("old"), state=ReplicaState.DRAINING, since=NOON - timedelta(hours=1))
    view = view_with(draining, replica())
    left = {"old": 3}
    first = replace(view, published=Published(3, frozenset({"r1"}), left))
    assert calls(first, NOON, DEADLINES) == [Stop(draining.id)]
    later = replace(view, published=Published(3, frozenset({"r1"}), left, succeeded_at=NOON))
    assert calls(later, NOON + DEADLINES.leave_grace - SECOND, DEADLINES) == []
    assert calls(later, NOON + DEADLINES.leave_grace, DEADLINES) == [Stop(draining.id)]


def test_scaling_down_drains_those_that_do_not_serve_first() -> None:
    view = view_with(replica("a"), replica("b", ReplicaState.STARTING), replica("c"), wanted=2)
    drains = [a for a in plan(view, NOON, DEADLINES) if isinstance(a, Drain)]
    assert [a.replica_id for a in drains] == ["b"]


def test_replicas_of_a_deleted_deployment_drain() -> None:
    view = view_with(replica()).without_deployment(MINI)
    (action,) = plan(view, NOON, DEADLINES)
    assert isinstance(action, Drain)


def test_replicas_of_a_deployment_that_nobody_ever_knew_are_left_alone() -> None:
    stray = replica("stray", uid="of another store")
    assert plan(view_with(replica(), stray), NOON, DEADLINES) == []
    disowned = view_with(replica(), stray).with_departed(
        Departed("of another store", MINI, collected=False)
    )
    assert plan(disowned, NOON, DEADLINES) == []


def test_what_was_made_for_a_deleted_namesake_is_drained_and_counts_for_nothing() -> None:
    view = view_with(replica("old")).without_deployment(MINI)
    view = view.with_deployment(created(spec(), NOON, uid="u2"))
    place, drain = plan(view, NOON, DEADLINES)
    assert (type(place), type(drain)) == (Place, Drain)


def test_a_head_that_holds_still_plans_nothing() -> None:
    view = replace(view_with(wanted=3), held="another head is in command")
    assert plan(view, NOON, DEADLINES) == []


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


def attempts(view: ClusterView, now: datetime, until: datetime) -> list[datetime]:
    """When replicas are placed that all fail as they are started."""
    placed, ids = [], itertools.count()
    while now < until:
        for each in [r for r in view.replicas.values() if r.state is ReplicaState.DRAINING]:
            view = view.without_replica(each.id)
        made = decisions(view, now, DEADLINES)
        view = applied(view, made, lambda: str(next(ids)), now)
        for each in [r for r in view.replicas.values() if r.state is ReplicaState.PENDING]:
            view = view.with_replica(each.moved(ReplicaState.FAILED, now))
        if any(isinstance(action, Place) for action in made):
            placed.append(now)
        now += timedelta(seconds=30)
    return placed


def test_what_fails_each_time_is_tried_ever_more_rarely_and_never_given_up() -> None:
    placed = attempts(view_with(wanted=2), NOON, NOON + timedelta(hours=5))
    pauses = [after - before for before, after in itertools.pairwise(placed)]
    minutes = [round(each / timedelta(minutes=1)) for each in pauses]
    assert minutes[:8] == [2, 2, 4, 8, 16, 32, 60, 60], minutes


def test_a_failure_after_all_was_well_is_the_first_one_again() -> None:
    tried = replace(replica(state=ReplicaState.FAILED), tries=5)
    view = view_with(tried)
    again = applied(view, [Drain(tried.id, "failed", trouble="boom")], lambda: "x", NOON)
    assert again.deployments[MINI].tries == 6
    assert applied(again, [Settle(MINI)], lambda: "x", NOON).deployments[MINI].tries == 0
    other = replace(spec(), template=replace(spec().template, model="other"))
    assert changed(again.deployments[MINI], other, NOON).tries == 0


def test_what_an_operator_sets_anew_is_tried_as_if_for_the_first_time() -> None:
    tried = replace(replica(state=ReplicaState.FAILED), tries=5)
    view = view_with(tried)
    known = replace(view.deployments[MINI], tries=6)
    soon = NOON + DEADLINES.retry(0)
    assert plan(view.with_deployment(known), soon, DEADLINES) == []
    view = specified(view, known, known.spec, NOON)
    assert view.deployments[MINI].tries == 0
    assert [type(each) for each in plan(view, soon, DEADLINES)] == [Drain]


def test_a_crash_loop_that_no_node_ends_goes_round_them_ever_more_rarely() -> None:
    tried = replace(crash_looping(), tries=2)
    view = view_with(tried).with_node(node("n2"))
    assert plan(view, NOON, DEADLINES) == []
    assert [type(each) for each in plan(view, NOON + DEADLINES.retry(2), DEADLINES)] == [Drain]


def test_a_replica_that_is_not_ready_in_time_is_tried_anew_and_says_so() -> None:
    view = view_with(replica(state=ReplicaState.STARTING))
    assert plan(view, NOON + DEADLINES.ready - timedelta(seconds=1), DEADLINES) == []
    (action,) = plan(view, NOON + DEADLINES.ready, DEADLINES)
    assert isinstance(action, Drain)
    assert "not ready after 600 s" in action.trouble


def crash_looping(name: str = "r1", node_id: str = "n1") -> Replica:
    return replace(replica(name, ReplicaState.BACKOFF, node_id=node_id), crashes=CRASH_LOOP)


def test_a_crash_loop_is_moved_to_another_node_and_says_so() -> None:
    view = view_with(crash_looping()).with_node(node("n2"))
    (drain,) = plan(view, NOON, DEADLINES)
    assert isinstance(drain, Drain)
    assert "ended 3 times on n1" in drain.trouble
    moved = view.with_replica(crash_looping().moved(ReplicaState.DRAINING, NOON))
    assert Place(MINI, node("n2").id) in plan(moved, NOON, DEADLINES)


def test_a_crash_loop_stays_where_no_other_node_is() -> None:
    assert plan(view_with(crash_looping()), NOON, DEADLINES) == []
    only_troubled = view_with(crash_looping(), crash_looping("r2", "n2"), wanted=2)
    assert plan(only_troubled.with_node(node("n2")), NOON, DEADLINES) == []


def test_a_replica_takes_anothers_place_only_after_being_ready_for_a_while() -> None:
    fresh = replace(replica("new"), evidence=Evidence.ANSWERS)
    view = view_with(replica("old", digest="old"), fresh)
    assert plan(view, NOON + MIN_READY - SECOND, DEADLINES) == []
    drains = plan(view, NOON + MIN_READY, DEADLINES)
    assert [a.replica_id for a in drains if isinstance(a, Drain)] == ["old"]
    unasked = view.with_replica(replica("new"))
    assert plan(unasked, NOON + MIN_READY, DEADLINES) == []


def test_a_drained_node_is_emptied_one_replica_after_the_other() -> None:
    view = view_with(replica("a"), replica("b"), wanted=2).with_node(node("n2"))
    for leaving in (replace(node(), draining=True), replace(node(), intent=NodeIntent.LEAVING)):
        assert plan(view.with_node(leaving), NOON, DEADLINES) == [Place(MINI, node("n2").id)]
    moved = replace(replica("c", node_id="n2"), evidence=Evidence.ANSWERS, since=PROVEN)
    view = view.with_node(replace(node(), draining=True)).with_replica(moved)
    assert [a.replica_id for a in plan(view, NOON, DEADLINES) if isinstance(a, Drain)] == ["a"]


def test_a_node_that_is_drained_keeps_its_replicas_where_no_other_is() -> None:
    view = view_with(replica()).with_node(replace(node(), draining=True))
    assert plan(view, NOON, DEADLINES) == []


def test_replicas_of_an_agent_that_hands_over_are_not_replaced() -> None:
    view = view_with(replica()).with_node(node("n2"))
    view = view.with_node(replace(node(), intent=NodeIntent.HANDING_OVER))
    assert plan(view, NOON, DEADLINES) == []


def test_a_replica_that_generates_nothing_is_replaced_before_it_goes() -> None:
    wedged = replace(replica(), evidence=Evidence.WEDGED)
    assert plan(view_with(wedged), NOON, DEADLINES) == [Place(MINI, node().id)]


def test_a_replica_that_only_the_head_cannot_reach_is_replaced_after_a_while() -> None:
    doubted = replace(replica(), evidence=Evidence.DOUBTED, evidence_since=NOON)
    answering = replace(replica("b"), evidence=Evidence.ANSWERS)
    view = view_with(doubted, answering, wanted=2)
    assert plan(view, NOON + DEADLINES.unreachable - SECOND, DEADLINES) == []
    drain, place = plan(view, NOON + DEADLINES.unreachable, DEADLINES)
    assert isinstance(drain, Drain)
    assert (drain.replica_id, place) == (doubted.id, Place(MINI, node().id))


def test_a_head_that_reaches_nobody_replaces_nobody() -> None:
    doubted = [
        replace(replica(name), evidence=Evidence.DOUBTED, evidence_since=NOON) for name in "ab"
    ]
    assert plan(view_with(*doubted, wanted=2), NOON + timedelta(hours=1), DEADLINES) == []


def test_a_replica_that_a_live_agent_never_starts_is_given_up_and_put_elsewhere() -> None:
    pending = replica(state=ReplicaState.PENDING)
    view = view_with(pending).with_node(node("n2"))
    assert plan(view, NOON + DEADLINES.obeyed - SECOND, DEADLINES) == [Start(pending.id)]
    later = NOON + DEADLINES.obeyed
    (given_up,) = decisions(view, later, DEADLINES)
    assert given_up == Abandon(pending.id, "n1 did not start r1 in 60 s")
    view = applied(view, [given_up], lambda: "x", later)
    assert view.deployments[MINI].trouble == "n1 did not start r1 in 60 s"
    assert plan(view, later, DEADLINES) == [Place(MINI, node("n2").id)]


def test_an_agent_that_was_away_gets_its_time_to_obey_from_its_return_on() -> None:
    pending = replica(state=ReplicaState.PENDING)
    back = replace(node(), since=NOON + DEADLINES.obeyed)
    view = view_with(pending).with_node(back)
    assert decisions(view, NOON + DEADLINES.obeyed, DEADLINES) == []
    assert decisions(view, back.since + DEADLINES.obeyed, DEADLINES) != []


def drained_by_others() -> Replica:
    """It was ready; then its agent reports that it drains, and nobody here had asked for that."""
    status = report("r1", ReplicaState.DRAINING)
    return replace(replica(state=ReplicaState.STARTING), status=status)


def test_a_replica_that_drains_unasked_is_replaced_and_stopped_after_its_grace() -> None:
    view = view_with(drained_by_others())
    assert plan(view, NOON + DEADLINES.unasked - SECOND, DEADLINES) == []
    later = NOON + DEADLINES.unasked
    (drain,) = plan(view, later, DEADLINES)
    assert isinstance(drain, Drain)
    assert "this head did not ask" in drain.trouble
    view = replace(
        applied(view, [drain], lambda: "x", later),
        published=Published(3, frozenset(), {"r1": 3}),
    )
    assert plan(view, later, DEADLINES) == [Place(MINI, node().id), Stop(drain.replica_id)]
    assert Stop(drain.replica_id) not in plan(stop_taken(view, drain.replica_id), later, DEADLINES)


def test_a_replica_of_a_former_template_that_drains_unasked_is_stopped_too() -> None:
    status = report("old", ReplicaState.DRAINING, digest="old")
    old = replace(replica("old", ReplicaState.STARTING, digest="old"), status=status)
    found = decisions(view_with(replica(), old), NOON + DEADLINES.unasked, DEADLINES)
    assert "old" in [a.replica_id for a in found if isinstance(a, Drain)]


def test_a_foreign_replica_that_drains_is_left_alone() -> None:
    stray = replace(drained_by_others(), deployment_uid="of another store")
    later = NOON + timedelta(hours=1)
    assert plan(view_with(stray, wanted=0), later, DEADLINES) == []


def test_a_replica_that_no_agent_ever_stops_holds_up_no_update_for_ever() -> None:
    stuck = replace(replica("stuck"), state=ReplicaState.DRAINING)
    view = view_with(stuck, replica("old", digest="old"))
    soon, late = NOON + SECOND, NOON + DEADLINES.stopped
    assert [a for a in decisions(view, soon, DEADLINES) if isinstance(a, Place)] == []
    assert [a for a in decisions(view, late, DEADLINES) if isinstance(a, Place)] != []


def test_a_restart_replaces_replicas_of_the_same_template() -> None:
    view = view_with(replica())
    assert plan(view, NOON, DEADLINES) == []
    view = view.with_deployment(restarted(view.deployments[MINI], NOON, Origin("op", "leak")))
    made = plan(view, NOON, DEADLINES)
    assert made == [Place(MINI, node("n1").id)]
    view = applied(view, made, iter("abc").__next__, NOON)  # type: ignore[arg-type]
    new = next(r for r in view.replicas.values() if r.id != "r1")
    assert new.template_digest == replica().template_digest
    ready = report(new.id, digest=new.template_digest)
    ready = replace(ready, generation=new.generation)
    proven = replace(new, state=ReplicaState.READY, status=ready, since=PROVEN)
    view = view.with_replica(replace(proven, evidence=Evidence.ANSWERS))
    assert plan(view, NOON, DEADLINES)[0] == Drain(replica().id, "of before the restart")


def test_going_back_keeps_the_replicas_that_are_still_of_it() -> None:
    view = view_with(replica())
    back = view.deployments[MINI]
    view = specified(view, back, spec(model="other"), NOON)
    other = view.deployments[MINI]
    view = specified(view, other, back.spec, NOON)
    assert [d for d in plan(view, NOON, DEADLINES) if not isinstance(d, Settle)] == []
    assert [each.number for each in view.deployments[MINI].revisions] == [1, 2, 3]
