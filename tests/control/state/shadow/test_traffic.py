"""How many pairs a day a primary's traffic gives."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from penstock.control.state.shadow.shadows import TENANT
from penstock.control.state.shadow.traffic import pairs_a_day
from penstock.control.state.tenancy.tenants import Shadowing, Tenant, TenantSpec
from penstock.control.state.tenancy.usage import Counts, UsageKey, UsageRow
from tests.control.state.shadow.test_routes import shadow, view
from tests.fakes.control_values import NOON


def row(requests: int, *, tenant: str = "", adapter: str = "", days: int = 0) -> UsageRow:
    of = UsageKey(tenant, "", "chat", adapter)
    return UsageRow(NOON.date() - timedelta(days=days), of, Counts(requests))


def given(*rows: UsageRow, **more: Any) -> float:
    """Of a share of 10 %."""
    of = shadow(**more)
    found = view(of)
    for name, kind in (("acme", Shadowing.ALLOW), ("never", Shadowing.NEVER)):
        tenant = Tenant(name, "u", 1, TenantSpec(shadow=kind), NOON, NOON)
        found = replace(
            found,
            tenancy=replace(found.tenancy, tenants={**found.tenancy.tenants, name: tenant}),
        )
    return pairs_a_day(found, of.spec, rows)


def test_the_share_of_the_busier_day_is_sampled() -> None:
    assert given() == 0
    assert given(row(100), row(300, tenant="acme"), row(900, days=1)) == 90


def test_what_shadows_asked_themselves_is_no_traffic() -> None:
    assert given(row(100), row(500, tenant=TENANT)) == 10


def test_only_those_count_whose_requests_are_repeated() -> None:
    rows = (row(100), row(200, tenant="acme"), row(400, tenant="never"), row(800, adapter="p@1"))
    assert given(*rows) == 30
    assert given(*rows, tenants=("acme",)) == 20


def test_a_limit_of_each_minute_holds_for_the_day() -> None:
    assert given(row(100_000), max_per_minute=2) == 2 * 24 * 60
