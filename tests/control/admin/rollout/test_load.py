"""Queues, waits, what is refused and what is doubted, as gateways report it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from penstock.control.managers.fleet.gateway_reports import GatewayReports
from penstock.control.managers.fleet.gateway_signs import GatewaySigns
from penstock.control.state.cluster import DeploymentCounts, GatewayReport
from tests.control.admin.app_harness import Admin, running_admin
from tests.fakes.control_values import NOON, SECOND, replica

MINI = {"name": "mini", "engine": "simulated", "model": "m"}
COUNTS = DeploymentCounts("mini", requests=10, rejected=1, sent=8)


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    """An app with one deployment."""
    async with running_admin() as running:
        await running.client.post("/admin/v1/deployments", json=MINI)
        yield running


def reports(admin: Admin) -> GatewayReports:
    signs = GatewaySigns(admin.clock)
    return GatewayReports(admin.cluster, signs, admin.clock, admin.traffic)


async def test_a_deployment_tells_its_queue_its_waits_and_what_it_shed(admin: Admin) -> None:
    taking = reports(admin)
    later = replace(COUNTS, queued=3, in_flight=2, requests=20, rejected=5, sent=12)
    later = replace(later, estimated_wait_ms=1500, queue_wait_us_sum=80_000)
    later = replace(later, resumed=12, not_resumed=1)
    await taking.take("gw-1", GatewayReport(NOON, 1, (COUNTS,)))
    admin.clock.advance(SECOND)
    await taking.take("gw-1", GatewayReport(NOON, 1, (later,)))
    for found in (
        (await admin.client.get("/admin/v1/deployments")).json()[0],
        (await admin.client.get("/admin/v1/deployments/mini")).json(),
    ):
        assert found["status"]["load"] == {
            "queued": 3,
            "in_flight": 2,
            "estimated_wait_ms": 1500,
            "queue_wait_ms": 20.0,
            "requests_last_minute": 10,
            "rejected_last_minute": 4,
            "shed_share": 0.4,
            "resumed": 12,
            "not_resumed": 1,
        }


async def test_a_deleted_deployment_is_no_longer_counted(admin: Admin) -> None:
    taking = reports(admin)
    await taking.take("gw-1", GatewayReport(NOON, 1, (COUNTS,)))
    assert set(admin.traffic.totals()) == {"mini"}
    await admin.client.delete("/admin/v1/deployments/mini")
    await taking.take("gw-1", GatewayReport(NOON, 1, (COUNTS,)))
    assert not admin.traffic.totals()


async def test_a_replica_tells_which_gateway_sends_it_nothing_and_why(admin: Admin) -> None:
    await admin.cluster.observe(lambda view: view.with_replica(replica("r1")), "test")
    doubting = GatewayReport(NOON, 1, doubts=(("r1", "failing", 700),))
    await reports(admin).take("gw-1", doubting)
    (found,) = (await admin.client.get("/admin/v1/replicas")).json()
    assert found["doubts"] == [{"gateway": "gw-1", "reason": "failing", "for_ms": 700}]
