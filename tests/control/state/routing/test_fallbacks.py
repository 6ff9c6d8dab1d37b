"""Whom the bounds of a tenant's list of models reach."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import DeploymentName, DeploymentSpec
from penstock.control.state.rollout.template import Template
from penstock.control.state.routing.degrading import degrading
from penstock.control.state.routing.fallbacks import tightened_bounds
from penstock.control.state.routing.limits import Canary, Sharing
from penstock.control.state.tenancy.tenants import Fallbacks, TenantSpec, created_tenant
from tests.fakes.control_values import NOON, deployment, spec

CLOUD = DeploymentSpec(DeploymentName("cloud"), Template(engine="canned", model="canned"))


def told(asked: DeploymentSpec, limits: TenantSpec) -> list[str]:
    view = ClusterView()
    for each in (asked, spec(name="next"), CLOUD):
        view = view.with_deployment(deployment(each, uid=each.name))
    tenancy = view.tenancy.with_tenant(created_tenant("acme", limits, NOON, uid="1"))
    return list(tightened_bounds(replace(view, tenancy=tenancy), ["acme"]))


def falling_back(*names: str) -> DeploymentSpec:
    return replace(spec(), degrading=degrading([f"fallback:{name}" for name in names], "reject"))


def sharing_with(name: str) -> DeploymentSpec:
    return replace(spec(), sharing=Sharing(canary=(Canary(name, 100),)))


@pytest.mark.parametrize(
    ("asked", "ways"),
    [
        (falling_back("next", "cloud"), "mini -> next, mini -> cloud;"),
        (sharing_with("cloud"), "mini -> cloud;"),
    ],
)
def test_a_tenant_is_told_where_its_requests_go_no_longer(asked: DeploymentSpec, ways: str) -> None:
    (line,) = told(asked, TenantSpec(models=("mini",)))
    assert ways in line
    assert "`penstock tenants set acme fallbacks=allow`" in line


@pytest.mark.parametrize(
    ("asked", "limits"),
    [
        (falling_back("cloud"), TenantSpec()),
        (falling_back("cloud"), TenantSpec(models=("mini", "cloud"))),
        (falling_back("cloud"), TenantSpec(models=("next",))),
        (falling_back("cloud"), TenantSpec(models=("mini",), fallbacks=Fallbacks.ALLOW)),
        (sharing_with("next"), TenantSpec(models=("mini",))),
    ],
)
def test_nothing_is_told_of_a_tenant_for_whom_nothing_changes(
    asked: DeploymentSpec, limits: TenantSpec
) -> None:
    assert told(asked, limits) == []
