"""What a deployment's spec changes in the view, and what has to hold of it beside the others."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from datetime import datetime

from penstock.control.state.adapters.bases import check_aliases_fit
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import DeploymentName, DeploymentSpec, created
from penstock.control.state.rollout.engines import check_of_people
from penstock.control.state.rollout.placing import specified
from penstock.control.state.rollout.revision import Origin
from penstock.control.state.routing.degrading import check_no_circle


def put_spec(
    view: ClusterView, spec: DeploymentSpec, now: datetime, origin: Origin, *, uid: str = ""
) -> ClusterView:
    """The view with a deployment of this spec. Raises `InvalidSpec`, `adapter-in-use`, and
    `conflict` where an engine has its name. `uid`: of a new one, where it is known before."""
    view = with_spec(view, spec, now, origin, uid=uid)
    check_beside(view, spec)
    return view


def with_spec(
    view: ClusterView, spec: DeploymentSpec, now: datetime, origin: Origin, *, uid: str = ""
) -> ClusterView:
    """The same, whatever else there is."""
    known = view.deployments.get(spec.name)
    check_of_people(known)
    if known is None:
        new = created(spec, now, uid=uid or secrets.token_hex(16), origin=origin)
        return view.with_deployment(new)
    return specified(view, known, spec, now, origin)


def check_beside(view: ClusterView, spec: DeploymentSpec, ending: Collection[str] = ()) -> None:
    """Raises `InvalidSpec` for a circle of fallbacks, and `adapter-in-use` where what an alias of
    it names does not fit. `ending`: deployments that are in no circle."""
    check_ways_end(view, spec, ending)
    check_aliases_fit(view, spec)


def check_ways_end(view: ClusterView, spec: DeploymentSpec, ending: Collection[str] = ()) -> None:
    """Raises `InvalidSpec` where fallbacks would lead from this deployment back to it."""

    def fallbacks_of(name: str) -> Sequence[str]:
        if name == spec.name:
            return spec.degrading.fallbacks
        other = view.deployments.get(DeploymentName(name))
        return other.spec.degrading.fallbacks if other else ()

    check_no_circle(spec.name, fallbacks_of, ending)
