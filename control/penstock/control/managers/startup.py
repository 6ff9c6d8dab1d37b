"""How a head begins: it looks around before it acts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

from penstock.control.managers.fleet.health import HealthManager
from penstock.control.managers.rollout.deployments import DeploymentManager
from penstock.control.managers.routing.routes import RouteManager


async def look_around_then_act(
    health: HealthManager,
    routes: RouteManager,
    deployments: DeploymentManager,
    *,
    expect_nodes_for: timedelta,
    before_acting: Callable[[], Awaitable[None]],
) -> None:
    """Routes are told, and replicas started and stopped, only once what the store remembers was
    checked against the replicas, and nodes have said whether they know more."""
    await health.check_remembered()
    await health.await_expected(expect_nodes_for)
    await before_acting()
    await routes.open()
    await deployments.run()
