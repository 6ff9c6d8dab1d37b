"""When a snapshot is not told: it would take away what nobody gave up.

A deployment goes by being deleted, not by missing from a store. Where replicas serve a name that
the new routes would no longer send anything to, and nobody deleted it, gateways keep what they
have.
"""

from __future__ import annotations

from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import ReplicaState
from penstock.control.state.fleet.serving import is_foreign
from penstock.control.state.routing.snapshot import Routes
from penstock.control.state.stamp import START_ONCE


def withheld(view: ClusterView, told: Routes, new: Routes) -> str:
    """Why the new routes must not follow those that were told; empty: they may."""
    if view.held:
        return view.held
    served = {r.deployment for r in new.replicas if r.state is ReplicaState.READY}
    for replica in view.replicas.values():
        if replica.deployment in served or replica.state is not ReplicaState.READY:
            continue
        if is_foreign(view, replica):
            return (
                f"replica {replica.id} serves {replica.deployment!r}, which this store does not "
                f"know: create the deployment, or {START_ONCE}"
            )
    known = {d.uid for d in new.deployments} | set(view.departed)
    for deployment in told.deployments:
        if deployment.uid not in known and deployment.name not in served:
            return f"deployment {deployment.name!r} went without being deleted: create it again"
    return ""
