"""What gateways count becomes counts that only grow, and the last minute's shares."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from penstock.control.managers.routing.traffic import DeploymentTraffic, Totals, Traffic
from penstock.control.state.cluster import (
    ClusterView,
    DeploymentCounts,
    Gateway,
    GatewayReport,
    GatewayState,
)
from penstock.control.state.fleet.replica import ReplicaId
from penstock.control.state.routing.doubts import Doubt, doubts_in
from tests.fakes.control_values import NOON, SECOND

ONE = DeploymentCounts("mini", queued=1, in_flight=2, requests=10, rejected=4, sent=5)


def view_of(*gateway_ids: str) -> ClusterView:
    """Gateways that report."""
    view = ClusterView()
    for name in gateway_ids:
        view = view.with_gateway(
            Gateway(name, GatewayState.REMOTE, report=GatewayReport(NOON, 1), reporting=True)
        )
    return view


def test_counts_of_gateways_are_added_up_and_the_longest_wait_is_told() -> None:
    traffic = Traffic()
    traffic.observe("a", "i", [replace(ONE, estimated_wait_ms=30)], NOON)
    traffic.observe("b", "i", [replace(ONE, estimated_wait_ms=700)], NOON)
    found = traffic.of(view_of("a", "b"), "mini", NOON)
    assert (found.queued, found.in_flight, found.estimated_wait_ms) == (2, 4, 700)
    assert traffic.of(view_of("a"), "mini", NOON).queued == 1
    assert traffic.totals()["mini"] == Totals(requests=20, rejected=8, sent=10)


def test_a_gateway_that_counts_for_long_already_says_nothing_of_the_last_minute() -> None:
    traffic = Traffic()
    traffic.observe("a", "i", [ONE], NOON)
    assert traffic.of(view_of("a"), "mini", NOON).shed_share == 0
    more = replace(ONE, requests=14, rejected=5, sent=7, queue_wait_us_sum=3000)
    traffic.observe("a", "i", [more], NOON + SECOND)
    found = traffic.of(view_of("a"), "mini", NOON + SECOND)
    assert (found.shed_share, found.queue_wait_ms) == (0.25, 1.5)


def test_a_minute_later_nothing_of_it_is_left() -> None:
    traffic = Traffic()
    for second in range(3):
        more = replace(ONE, requests=10 + second, rejected=4 + second)
        traffic.observe("a", "i", [more], NOON + second * SECOND)
    assert traffic.of(view_of("a"), "mini", NOON + 3 * SECOND).shed_share == 1
    assert traffic.of(view_of("a"), "mini", NOON + timedelta(minutes=2)) == DeploymentTraffic(1, 2)


def test_another_instance_of_a_gateway_counts_from_0_again() -> None:
    for instance in ("other", "same"):  # an older gateway names none
        traffic = Traffic()
        traffic.observe("a", "same", [ONE], NOON)
        traffic.observe("a", instance, [replace(ONE, requests=3, rejected=3)], NOON + SECOND)
        assert traffic.totals()["mini"].requests == 13
        assert traffic.of(view_of("a"), "mini", NOON + SECOND).last_minute.requests == 3


def test_what_is_gone_is_forgotten() -> None:
    traffic = Traffic()
    traffic.observe("a", "i", [ONE, replace(ONE, deployment="old")], NOON)
    traffic.keep(["b"], ["mini"])
    assert set(traffic.totals()) == {"mini"}
    assert traffic.of(view_of("a"), "mini", NOON) == DeploymentTraffic()


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans(), st.integers(0, 5)), max_size=30))
def test_totals_are_what_came_whatever_restarts(steps: list[tuple[str, bool, int]]) -> None:
    traffic, counts, instances, came = Traffic(), {"a": 0, "b": 0}, {"a": 0, "b": 0}, 0
    for gateway, restarts, new in steps:
        if restarts:
            counts[gateway], instances[gateway] = 0, instances[gateway] + 1
        counts[gateway] += new
        came += new
        report = [DeploymentCounts("mini", requests=counts[gateway])]
        traffic.observe(gateway, str(instances[gateway]), report, NOON)
    assert traffic.totals().get("mini", Totals()).requests == came


def test_doubts_are_those_of_gateways_that_report() -> None:
    report = GatewayReport(NOON, 1, doubts=(("r1", "failing", 900),))
    view = ClusterView()
    for name, reporting in (("a", True), ("b", False), ("c", True)):
        gateway = Gateway(name, GatewayState.REMOTE, report=report, reporting=reporting)
        view = view.with_gateway(gateway)
    assert doubts_in(view) == {
        ReplicaId("r1"): [Doubt("a", "failing", 900), Doubt("c", "failing", 900)]
    }
