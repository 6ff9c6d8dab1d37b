"""Where a tenant's list of models bounds what stands in for another deployment. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import Deployment
from penstock.control.state.tenancy.tenants import Fallbacks, Tenant


def tightened_bounds(view: ClusterView, tenants: Collection[str]) -> Iterator[str]:
    """One line for each of these tenants whose requests are kept from going where ladders and
    canaries lead: for whoever upgrades from a version in which the list did not hold there."""
    for name in sorted(tenants):
        tenant = view.tenancy.tenants.get(name)
        if tenant and (ways := _ways_outside(view, tenant)):
            yield (
                f"tenant {name}: its models hold for fallbacks, and for providers as canaries, too:"
                f" no longer {', '.join(ways)}; `penstock tenants set {name} fallbacks=allow`"
                " lets them through as before"
            )


def _ways_outside(view: ClusterView, tenant: Tenant) -> list[str]:
    spec = tenant.spec
    if spec.fallbacks is Fallbacks.ALLOW or not spec.models:
        return []
    return [
        f"{deployment.spec.name} -> {name}"
        for _, deployment in sorted(view.deployments.items())
        if deployment.spec.name in spec.models
        for name in _stand_ins(view, deployment)
        if name not in spec.models
    ]


def _stand_ins(view: ClusterView, deployment: Deployment) -> list[str]:
    managed = {d.spec.name for d in view.deployments.values() if d.target.template.is_managed}
    canaries = (c.deployment for c in deployment.spec.sharing.canary if c.deployment in managed)
    return list(dict.fromkeys((*deployment.spec.degrading.fallbacks, *canaries)))
