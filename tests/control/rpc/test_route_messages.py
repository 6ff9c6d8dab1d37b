"""What gateways are told of resume."""

from __future__ import annotations

from dataclasses import replace

from penstock.control.rpc.route_wire import RouteEncoder
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import ReplicaState
from penstock.control.state.rollout.deployment import created
from penstock.control.state.routing.limits import Limits
from penstock.control.state.routing.snapshot import RouteSnapshot, routes_of
from penstock.control.state.switch import Switch
from penstock.v1 import routes_pb2
from tests.fakes.control_values import NOON, UID, replica, spec


def told(view: ClusterView) -> routes_pb2.RouteSnapshot:
    return RouteEncoder().message(RouteSnapshot(1, NOON, routes_of(view)))


def limited(limits: Limits) -> ClusterView:
    return ClusterView().with_deployment(created(replace(spec(), limits=limits), NOON, uid=UID))


def test_on_and_off_are_true_and_false() -> None:
    (on,) = told(limited(Limits())).deployments
    assert (on.limits.resume, on.limits.resume_wait_ms) == (True, 10_000)
    (off,) = told(limited(Limits(resume=Switch.OFF, resume_wait_ms=0))).deployments
    assert (off.limits.resume, off.limits.resume_wait_ms) == (False, 0)


def test_a_moment_of_hand_over_is_told_in_milliseconds_since_1970() -> None:
    view = limited(Limits())
    leaving = replace(replica("r1", ReplicaState.DRAINING), hand_over_at=NOON)
    routes = told(view.with_replica(leaving).with_replica(replica("r2")))
    assert [r.hand_over_at_ms for r in routes.replicas] == [int(NOON.timestamp() * 1000), 0]
