"""What Prometheus's HTTP service discovery is told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from penstock.control.admin.app import admin_app
from penstock.control.admin.observe.scrape_targets import scrape_targets
from penstock.control.state.cluster import ClusterView, Gateway, GatewayReport, GatewayState
from penstock.control.state.fleet.replica import Node, NodeState
from penstock.control.state.tenancy.tokens import Role
from tests.control.admin.app_harness import Admin, client_of, running_admin
from tests.fakes.control_values import node

HERE, THERE = "127.0.0.1", "10.0.0.7"


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        yield admin


def gateway(
    name: str, metrics: str, machine: str = HERE, *, state: GatewayState = GatewayState.REMOTE
) -> Gateway:
    report = GatewayReport(datetime.now(UTC), 1, metrics_address=metrics, machine=machine)
    address = "" if state is GatewayState.REMOTE else "127.0.0.1:8080"
    return Gateway(name, state, address=address, report=report)


def told(
    *known: Gateway | Node, head: str = "127.0.0.1:8084", asked_at: str = HERE
) -> Mapping[str, str]:
    """The job of each address."""
    view = ClusterView()
    for each in known:
        view = view.with_gateway(each) if isinstance(each, Gateway) else view.with_node(each)
    found = scrape_targets(view, head, asked_at)
    return {address: it.labels["job"] for address, it in found.items()}


def agent(metrics: str, host: str = HERE, state: NodeState = NodeState.READY) -> Node:
    known = node("n1", state)
    return replace(known, facts=replace(known.facts, host=host, metrics_address=metrics))


def test_everybody_who_tells_of_metrics_is_told_of() -> None:
    known = (gateway("gw-1", "127.0.0.1:8083"), agent("127.0.0.1:8085"))
    assert told(*known) == {
        "127.0.0.1:8084": "penstock-head",
        "127.0.0.1:8083": "penstock-gateway",
        "127.0.0.1:8085": "penstock-node",
    }


@pytest.mark.parametrize("said", ["", "127.0.0.1:0", "127.0.0.1:"])
def test_who_has_no_metrics_is_left_out(said: str) -> None:
    assert told(gateway("gw-1", said), agent(said), head=said) == {}


def test_every_interface_is_told_as_the_host_of_its_machine() -> None:
    known = (gateway("gw-1", "0.0.0.0:8083", THERE), agent("[::]:8085", "10.0.0.8"))
    found = told(*known, head="0.0.0.0:8084", asked_at="head.example")
    assert set(found) == {"10.0.0.7:8083", "10.0.0.8:8085", "head.example:8084"}


@pytest.mark.parametrize("asked_at", [HERE, THERE])
def test_what_only_another_machine_reaches_is_left_out(asked_at: str) -> None:
    known = (gateway("gw-9", "127.0.0.1:8083", THERE), agent("localhost:8085", "10.0.0.8"))
    assert told(*known, head="", asked_at=asked_at) == {}


def test_a_loopback_is_told_to_who_comes_over_it() -> None:
    local = gateway("gw-1", "127.0.0.1:8083", THERE, state=GatewayState.READY)
    assert set(told(local, asked_at=HERE)) == {"127.0.0.1:8083", "127.0.0.1:8084"}
    assert told(local, asked_at="head.example") == {}


def test_who_is_silent_is_told_of_and_who_is_gone_is_not() -> None:
    kept = (gateway("gw-1", "10.0.0.7:8083", THERE, state=GatewayState.SILENT),)
    gone = (gateway("gw-2", "10.0.0.9:8083", THERE, state=GatewayState.STOPPED),)
    lost = agent("10.0.0.8:8085", "10.0.0.8", NodeState.LOST)
    assert set(told(*kept, *gone, lost, head="")) == {"10.0.0.7:8083"}


def test_of_two_gateways_at_one_address_the_later_one_is_told() -> None:
    both = (gateway("gw-1", "127.0.0.1:8083"), gateway("gw-1.2", "127.0.0.1:8083"))
    view = ClusterView()
    for each in both:
        view = view.with_gateway(each)
    (target,) = scrape_targets(view, "", HERE).values()
    assert target.labels["gateway"] == "gw-1.2"


async def test_a_token_of_role_viewer_is_told_in_prometheuss_words(admin: Admin) -> None:
    await admin.cluster.observe(
        lambda view: view.with_gateway(gateway("gw-1", "127.0.0.1:8083")), "test"
    )
    app = admin_app(replace(admin.services, head_metrics="127.0.0.1:8084"), "1")
    headers = await admin.headers(Role.VIEWER)
    async with client_of(app) as client:
        reply = await client.get("/admin/v1/scrape-targets", headers=headers)
    assert reply.headers["content-type"] == "application/json"
    assert reply.json() == [
        {
            "targets": ["127.0.0.1:8083"],
            "labels": {"job": "penstock-gateway", "gateway": "gw-1"},
        },
        {"targets": ["127.0.0.1:8084"], "labels": {"job": "penstock-head"}},
    ]
