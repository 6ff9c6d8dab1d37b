"""When streams of a replica that leaves go on at others, and how long it is kept for that."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import Node, NodeIntent, Replica, ReplicaId, ReplicaState
from penstock.control.state.rollout.actions import Drain
from penstock.control.state.rollout.deployment import Deployment, changed, created
from penstock.control.state.rollout.handing_over import (
    MOVING,
    asked_at_once,
    drain_left,
    with_hand_over,
)
from penstock.control.state.rollout.placing import draining
from penstock.control.state.rollout.template import Template, template_digest
from penstock.control.state.routing.limits import Limits
from penstock.control.state.routing.snapshot import routes_of
from penstock.control.state.switch import Switch
from tests.fakes.control_values import MINI, NOON, SECOND, UID, node, replica, spec

DRAIN = 30 * SECOND
R1 = ReplicaId("r1")
OFF = Limits(resume=Switch.OFF)
CLOUD = Template("openai", "gpt", (("api_key_env", "KEY"),))


def draining_since_noon(
    deployment: Deployment | None = None, on: Node | None = None, **changes: str
) -> ClusterView:
    known = deployment or created(spec(), NOON, uid=UID)
    view = ClusterView().with_node(on or node()).with_deployment(known)
    view = view.with_replica(replace(replica(), **changes))  # type: ignore[arg-type]
    return draining(view, Drain(R1, "more than wanted"), NOON)


def moment(view: ClusterView, now: datetime = NOON) -> datetime | None:
    return one(with_hand_over(view, now, DRAIN)).hand_over_at


def one(view: ClusterView) -> Replica:
    return view.replicas[R1]


def test_streams_move_when_the_time_to_drain_is_up_and_that_moment_is_fixed() -> None:
    view = with_hand_over(draining_since_noon(), NOON, DRAIN)
    assert one(view).hand_over_at == NOON + DRAIN
    assert with_hand_over(view, NOON + 20 * SECOND, DRAIN) is view
    assert with_hand_over(view, NOON + 20 * SECOND, 2 * DRAIN) is view


@pytest.mark.parametrize(
    "on",
    [replace(node(), draining=True, hand_over=True), replace(node(), intent=NodeIntent.LEAVING)],
)
def test_who_leaves_a_machine_at_short_notice_hands_over_at_once(on: Node) -> None:
    assert moment(draining_since_noon(on=on)) == NOON


def test_an_operator_who_hurries_later_moves_the_moment_to_now() -> None:
    view = with_hand_over(draining_since_noon(), NOON, DRAIN)
    hurried = with_hand_over(asked_at_once(view, MINI), NOON + 9 * SECOND, DRAIN)
    assert one(hurried).hand_over_at == NOON + 9 * SECOND
    assert with_hand_over(hurried, NOON + 12 * SECOND, DRAIN) is hurried


def test_what_an_operator_asked_for_holds_until_the_next_change() -> None:
    known = replace(created(spec(), NOON, uid=UID), hand_over=True)
    assert moment(draining_since_noon(known)) == NOON
    assert moment(draining_since_noon(changed(known, spec(replicas=3), NOON))) == NOON + DRAIN


def test_without_resume_streams_end_where_they_are() -> None:
    off = created(replace(spec(), limits=OFF), NOON, uid=UID)
    view = draining_since_noon(off)
    assert moment(view) is None
    assert drain_left(view, one(view), NOON, DRAIN) == DRAIN


def test_a_providers_streams_end_where_they_are() -> None:
    known = created(replace(spec(), template=CLOUD), NOON, uid=UID)
    assert moment(draining_since_noon(known, template_digest=template_digest(CLOUD))) is None


def test_old_replicas_with_an_engine_hand_over_also_when_a_provider_takes_their_place() -> None:
    known = changed(created(spec(), NOON, uid=UID), replace(spec(), template=CLOUD), NOON)
    assert moment(draining_since_noon(known)) == NOON + DRAIN


def test_of_a_deleted_deployment_nothing_is_handed_over() -> None:
    view = draining_since_noon().without_deployment(MINI)
    assert moment(view) is None
    assert drain_left(view, one(view), NOON, DRAIN) == DRAIN


def test_gateways_are_told_while_it_drains_and_not_when_it_serves_again() -> None:
    view = with_hand_over(draining_since_noon(), NOON, DRAIN)
    (route,) = routes_of(view).replicas
    assert route.hand_over_at == NOON + DRAIN
    back = replace(one(view), state=ReplicaState.READY)
    (route,) = routes_of(view.with_replica(back)).replicas
    assert route.hand_over_at is None
    assert moment(view.with_replica(back)) is None


def test_what_moves_has_its_wait_and_a_margin_beyond_the_moment() -> None:
    view = with_hand_over(draining_since_noon(), NOON, DRAIN)
    moving = MOVING + timedelta(milliseconds=Limits().resume_wait_ms)
    assert drain_left(view, one(view), NOON, DRAIN) == DRAIN + moving
    assert drain_left(view, one(view), NOON + 8 * SECOND, DRAIN) == DRAIN + moving - 8 * SECOND


def test_at_once_shortens_nothing_for_streams_that_cannot_move() -> None:
    view = with_hand_over(asked_at_once(draining_since_noon(), MINI), NOON, DRAIN)
    assert drain_left(view, one(view), NOON + SECOND, DRAIN) == DRAIN


def test_a_clock_that_was_set_back_keeps_nobody_for_hours() -> None:
    view = with_hand_over(draining_since_noon(), NOON, DRAIN)
    early = NOON - timedelta(hours=5)
    assert drain_left(view, one(view), early, DRAIN) <= DRAIN + MOVING + 10 * SECOND
