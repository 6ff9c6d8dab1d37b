"""Money and tokens by tenant and adapter, as the head tells Prometheus."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import date, timedelta

from penstock.control.metrics.head import HeadFacts, HeadMetrics
from penstock.control.metrics.usage import FirstLabels, UsageMetrics, UsageToday
from penstock.control.state.cluster import ClusterView
from penstock.control.state.tenancy.tenancy import Standing
from penstock.control.state.tenancy.tenants import Tenant, TenantSpec
from penstock.control.state.tenancy.usage import Counts, Reading, UsageKey, UsageRow
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import NOON, deployment
from tests.fakes.promtool import complaints, samples

TODAY = date(2026, 1, 2)
COUNTS = Counts(
    requests=2, prompt_tokens=30, completion_tokens=5, cached_tokens=8, cost_nanousd=250_000_000
)


def row(
    tenant: str = "acme", of: str = "mini", adapter: str = "", key: str = "k", day: date = TODAY
) -> UsageRow:
    return UsageRow(day, UsageKey(tenant, key, of, adapter), COUNTS)


def page(*rows: UsageRow) -> bytes:
    """Of a head that has one deployment, mini."""
    view = ClusterView().with_deployment(deployment())
    facts = HeadFacts(lambda: view, int, dict, int, usage_today=lambda: rows)
    return HeadMetrics(facts).page()


def test_a_tenants_keys_and_adapters_are_added_up() -> None:
    told = page(row(), row(key="other"), row(adapter="pirate@1"), row(tenant=""))
    found = samples(told)
    acme = 'deployment="mini",tenant="acme"'
    pirate = 'adapter="pirate@1",deployment="mini"'
    for name, value in {
        f"penstock_head_tenant_requests_total{{{acme}}}": 6,
        'penstock_head_tenant_tokens_total{deployment="mini",kind="prompt",tenant="acme"}': 90,
        'penstock_head_tenant_tokens_total{deployment="mini",kind="cached",tenant="acme"}': 24,
        'penstock_head_tenant_tokens_total{deployment="mini",kind="completion",tenant="acme"}': 15,
        f"penstock_head_tenant_cost_usd_total{{{acme}}}": 0.75,
        'penstock_head_tenant_requests_total{deployment="mini",tenant="-"}': 2,
        f"penstock_head_adapter_requests_total{{{pirate}}}": 2,
        f"penstock_head_adapter_cost_usd_total{{{pirate}}}": 0.25,
    }.items():
        assert found[name] == value, name
    assert complaints(told) == ""


def test_tenants_beyond_the_bound_and_deleted_deployments_beyond_it_are_told_together() -> None:
    many = [row(tenant=f"t{number}") for number in range(300)]
    others = [row(tenant="t0", of=f"gone{number}") for number in range(300)]
    found = samples(page(*many, *others))
    requests = {n: v for n, v in found.items() if n.startswith("penstock_head_tenant_requests")}
    assert len(requests) == 201 + 199 + 1
    name = "penstock_head_tenant_requests_total"
    assert requests[f'{name}{{deployment="mini",tenant="_other"}}'] == 200
    assert requests[f'{name}{{deployment="gone0",tenant="t0"}}'] == 2
    assert requests[f'{name}{{deployment="_other",tenant="t0"}}'] == 2 * 101


def test_a_label_is_given_back_when_the_day_is_over_and_not_before() -> None:
    rows = [row(adapter=f"a@{number}") for number in range(200)]
    metrics = UsageMetrics(lambda: rows)

    def told() -> set[str]:
        return {
            sample.labels["adapter"]
            for family in metrics.collect(ClusterView())
            for sample in family.samples
            if "adapter" in sample.labels
        }

    assert len(told()) == 200
    rows[:] = [row(adapter="b@1")]
    assert told() == {"_other"}
    rows[:] = [row(adapter="b@1", day=TODAY + timedelta(days=1))]
    assert told() == {"b@1"}


def test_idle_tenants_with_limits_take_no_labels() -> None:
    tenants = {
        name: Tenant(name, name, 1, TenantSpec(tokens_per_day=5), NOON, NOON)
        for name in (*(f"idle{number}" for number in range(300)), "acme", "late")
    }
    view = ClusterView()
    standing = Standing(used_up=frozenset({"late"}))
    view = replace(view, tenancy=replace(view.tenancy, tenants=tenants, standing=standing))
    facts = HeadFacts(lambda: view, int, dict, int, usage_today=lambda: [row()])
    found = samples(HeadMetrics(facts).page())
    used_up = {n: v for n, v in found.items() if n.startswith("penstock_head_tenant_used_up")}
    name = 'penstock_head_tenant_used_up{limit="tokens"'
    assert used_up == {f'{name},tenant="acme"}}': 0, f'{name},tenant="late"}}': 1}


def test_who_has_a_label_keeps_it() -> None:
    labels = FirstLabels(most=2)
    assert [labels.of(name) for name in ("a", "b", "c", "a")] == ["a", "b", "_other", "a"]


async def test_what_is_stored_of_today_is_read_when_it_is_asked_for() -> None:
    store, clock = MemoryStore(), ManualClock()
    today = UsageToday(store, clock, asyncio.get_running_loop())
    assert await asyncio.to_thread(today.rows) == []
    day = clock.now().date()
    await store.record([Reading(day, "i", row().of, COUNTS)])
    (found,) = await asyncio.to_thread(today.rows)
    assert (found.of, found.counts) == (row().of, COUNTS)


def test_a_head_that_stops_tells_none() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    assert UsageToday(MemoryStore(), ManualClock(), loop).rows() == []
