"""How many pairs a day a shadow may come to, by what its primary's clients asked. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import date
from typing import Final

from penstock.control.state.cluster import ClusterView
from penstock.control.state.shadow.shadows import TENANT
from penstock.control.state.shadow.spec import MOST_PERMILLE, ShadowSpec
from penstock.control.state.tenancy.tenants import Shadowing
from penstock.control.state.tenancy.usage import UsageKey, UsageRow

MINUTES: Final = 24 * 60


def pairs_a_day(view: ClusterView, spec: ShadowSpec, rows: Iterable[UsageRow]) -> float:
    """At most, and with a session for each request: of the busiest day that there are rows of. What
    shadows themselves had is no traffic."""
    days: Counter[date] = Counter()
    for row in rows:
        if _is_sampled(view, spec, row.of):
            days[row.day] += row.counts.requests
    found = max(days.values(), default=0) * spec.share_permille / MOST_PERMILLE
    if not spec.max_per_minute:
        return found
    gateways = sum(each.reporting for each in view.gateways.values())
    return min(found, spec.max_per_minute * MINUTES * max(gateways, 1))


def _is_sampled(view: ClusterView, spec: ShadowSpec, of: UsageKey) -> bool:
    if of.deployment != spec.primary.deployment or of.tenant == TENANT:
        return False
    if of.adapter not in _adapters(view, spec) or (spec.tenants and of.tenant not in spec.tenants):
        return False
    tenant = view.tenancy.tenants.get(of.tenant)
    return tenant is None or tenant.spec.shadow is not Shadowing.NEVER


def _adapters(view: ClusterView, spec: ShadowSpec) -> frozenset[str]:
    """Those that answer who asks for the primary; the base model is the empty one."""
    primary = spec.primary
    if not primary.alias:
        return frozenset({""})
    alias = view.adapters.aliases.get(str(primary))
    return frozenset(map(str, alias.target.refs)) if alias else frozenset()
