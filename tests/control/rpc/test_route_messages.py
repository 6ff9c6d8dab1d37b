"""What gateways are told of resume."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.routing.routes import RouteManager
from penstock.control.rpc.route_wire import RouteEncoder, gateway_report
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import ReplicaState
from penstock.control.state.rollout.deployment import created
from penstock.control.state.routing.limits import Limits
from penstock.control.state.routing.slo import Objectives, Slo, SloCount
from penstock.control.state.routing.snapshot import RouteSnapshot, routes_of
from penstock.control.state.switch import Switch
from penstock.v1 import routes_pb2
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import NOON, UID, replica, spec


def told(view: ClusterView) -> routes_pb2.RouteSnapshot:
    return RouteEncoder().message(RouteSnapshot(1, NOON, routes_of(view)))


async def as_managed(clock: ManualClock, view: ClusterView) -> RouteSnapshot:
    cluster = ClusterStore(MemoryStore(), clock)
    await cluster.observe(lambda _: view, "test")
    routes = RouteManager(cluster, clock)
    await routes.open()
    async for snapshot in routes.watch(0):
        return snapshot
    raise AssertionError("no snapshot")


def limited(limits: Limits) -> ClusterView:
    return ClusterView().with_deployment(created(replace(spec(), limits=limits), NOON, uid=UID))


def test_on_and_off_are_true_and_false() -> None:
    (on,) = told(limited(Limits())).deployments
    assert (on.limits.resume, on.limits.resume_wait_ms) == (True, 10_000)
    (off,) = told(limited(Limits(resume=Switch.OFF, resume_wait_ms=0))).deployments
    assert (off.limits.resume, off.limits.resume_wait_ms) == (False, 0)


def test_objectives_are_told_and_their_counts_read() -> None:
    slo = Slo(ttft_p50_ms=800, error_rate=0.5)
    asked = replace(spec(), objectives=Objectives(slo))
    (route,) = told(ClusterView().with_deployment(created(asked, NOON, uid=UID))).deployments
    assert (route.slo.ttft_p50_ms, route.slo.total_p99_ms, route.slo.error_rate) == (800, 0, 0.5)
    report = routes_pb2.GatewayReport(at_ms=1)
    counted = report.deployments.add(deployment="mini", requests=9)
    counted.slo.add(objective="ttft_p50", requests=7, bad=2)
    (counts,) = gateway_report(report).deployments
    assert counts.slo == (SloCount("ttft_p50", 7, 2),)


def test_a_moment_of_hand_over_is_told_in_milliseconds_since_1970() -> None:
    view = limited(Limits())
    leaving = replace(replica("r1", ReplicaState.DRAINING), hand_over_at=NOON)
    routes = told(view.with_replica(leaving).with_replica(replica("r2")))
    assert [r.hand_over_at_ms for r in routes.replicas] == [int(NOON.timestamp() * 1000), 0]


async def test_a_moment_of_hand_over_is_told_as_gateways_clocks_show_it() -> None:
    """The head's own moments are steady: they stay as they are when somebody sets its clock."""
    clock = ManualClock()
    clock.step_wall(timedelta(minutes=-3, milliseconds=2))
    leaving = replace(replica("r1", ReplicaState.DRAINING), hand_over_at=NOON)
    snapshot = await as_managed(clock, limited(Limits()).with_replica(leaving))
    (route,) = RouteEncoder().message(snapshot).replicas
    assert route.hand_over_at_ms == int(NOON.timestamp() - 180) * 1000
