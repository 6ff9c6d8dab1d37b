"""What gateways are told of a shadow, and when."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import DeploymentName
from penstock.control.state.routing.snapshot import routes_of
from penstock.control.state.shadow.routes import shadow_routes
from penstock.control.state.shadow.shadows import (
    Compared,
    Shadow,
    Shadows,
    has_enough_self,
    why_ended,
)
from penstock.control.state.shadow.spec import ENDPOINTS, Candidate, Primary, ShadowSpec, Until
from tests.fakes.control_values import NOON, deployment, spec

UID = "s1"
KNOWN = Compared(":9000", known=frozenset({UID}))


def shadow(**more: Any) -> Shadow:
    return Shadow(ShadowSpec("s", Primary("chat"), Candidate("small"), 100, **more), UID, 7, NOON)


def view(of: Shadow, compared: Compared = KNOWN) -> ClusterView:
    """A cluster with both deployments."""
    found = ClusterView(shadows=Shadows({of.spec.name: of}, compared))
    for name in ("chat", "small"):
        found = found.with_deployment(deployment(spec(name=name), uid=name))
    return found


def test_a_shadow_is_told_from_when_the_comparer_knows_it() -> None:
    assert shadow_routes(view(shadow(), Compared(":9000"))) == ()
    (route,) = shadow_routes(view(shadow()))
    assert (route.endpoints, route.self_permille, route.budget_used_up) == (ENDPOINTS, 250, False)


def test_one_whose_comparer_is_away_is_still_told_so_that_gateways_count_what_they_drop() -> None:
    routes = routes_of(view(shadow(), replace(KNOWN, address="")))
    assert (len(routes.shadows), routes.comparer_address) == (1, "")


@pytest.mark.parametrize("change", [{"paused": True}, {"ended": "500 pairs are counted"}])
def test_one_that_is_paused_or_ended_is_not_told(change: dict[str, Any]) -> None:
    assert shadow_routes(view(replace(shadow(), **change))) == ()


@pytest.mark.parametrize("name", ["chat", "small"])
def test_one_whose_deployment_is_deleted_is_not_told(name: str) -> None:
    assert shadow_routes(view(shadow()).without_deployment(DeploymentName(name))) == ()


def test_the_self_arm_is_asked_more_rarely_once_it_is_known() -> None:
    assert (has_enough_self(499), has_enough_self(500)) == (False, True)
    enough = replace(KNOWN, enough_self=frozenset({UID}))
    assert shadow_routes(view(shadow(), enough))[0].self_permille == 50
    assert shadow_routes(view(shadow(self_permille=10), enough))[0].self_permille == 10
    assert shadow_routes(view(shadow(self_permille=0)))[0].self_permille == 0


def test_money_that_is_used_up_is_told() -> None:
    used_up = replace(KNOWN, used_up=frozenset({UID}))
    assert shadow_routes(view(shadow(usd_per_day=1.0), used_up))[0].budget_used_up


def test_routes_that_are_withheld_still_stop_a_shadow() -> None:
    told = routes_of(view(shadow()))
    now = routes_of(view(replace(shadow(), paused=True), replace(KNOWN, address="")))
    kept = told.with_rules_of(now)
    assert (kept.deployments, kept.shadows, kept.comparer_address) == (told.deployments, (), "")


def test_a_shadow_ends_with_its_pairs_or_its_time() -> None:
    until = Until(pairs=500, at=NOON + timedelta(hours=1))
    assert why_ended(shadow(until=until), 499, NOON) == ""
    assert why_ended(shadow(until=until), 500, NOON) == "500 pairs are counted"
    assert "13:00" in why_ended(shadow(until=until), 0, NOON + timedelta(hours=1))
    assert why_ended(shadow(), 10**9, NOON + timedelta(days=9999)) == ""
