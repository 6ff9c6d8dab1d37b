"""Which replica has which role, where a deployment's settings ask for roles. Pure.

A replica keeps its role as long as so many of that role are wanted; those that serve come first, so
that through surges and replacements their counts are what was asked for. A role changes without a
restart: engines keep no mode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import LIVE, Replica, ReplicaId
from penstock.control.state.fleet.serving import is_judged, serving
from penstock.control.state.rollout.deployment import Deployment
from penstock.control.state.routing.program_setting import Role, Roles


def role_of(deployment: Deployment | None, replica: Replica) -> str:
    """As gateways are told it; empty: it has none."""
    return replica.role if deployment and deployment.spec.sharing.roles.total else ""


def with_roles(view: ClusterView) -> ClusterView:
    """The view in which every live replica of a deployment with roles has one."""
    for deployment in view.deployments.values():
        roles = deployment.spec.sharing.roles
        if not roles.total:
            continue
        live = [r for r in view.replicas_for(deployment) if r.state in LIVE]
        served = frozenset(r.id for r in serving(view, deployment))
        # What a canary judges takes no role from those beside it: it is asked on its own.
        for judged in (False, True):
            arm = [r for r in live if is_judged(deployment, r) is judged]
            for replica_id, role in assigned(roles, arm, served).items():
                view = view.with_replica(replace(view.replicas[replica_id], role=role))
    return view


def assigned(
    roles: Roles, replicas: Sequence[Replica], served: frozenset[ReplicaId]
) -> Mapping[ReplicaId, Role]:
    """The roles of those that are to have another than they have."""
    left = Counter({Role.PREFILL: roles.prefill, Role.DECODE: roles.decode})
    oldest_first = sorted(replicas, key=lambda r: (r.assigned_at, r.id))
    serving_ones = [r for r in oldest_first if r.id in served]
    found: dict[ReplicaId, Role] = {}
    if serving_ones and not any(r.role == Role.DECODE for r in serving_ones):
        first = serving_ones.pop(0)  # without one that generates nobody is answered
        found[first.id] = Role.DECODE
        left[Role.DECODE] -= 1
    found |= _settled(serving_ones, left)
    found |= _settled([r for r in oldest_first if r.id not in served], left)
    return {r.id: found[r.id] for r in replicas if found[r.id] != r.role}


def _settled(replicas: Sequence[Replica], left: Counter[Role]) -> dict[ReplicaId, Role]:
    """The roles of these, out of those that are left: who has one keeps it, the oldest first. One
    that is more than wanted, as while another takes its place, has what it had."""
    found: dict[ReplicaId, Role] = {}
    for replica in replicas:
        kept = next((role for role in Role if role == replica.role and left[role] > 0), None)
        if kept:
            left[kept] -= 1
            found[replica.id] = kept
    for replica in replicas:
        if replica.id not in found:
            lacking = max(Role, key=lambda role: left[role])
            had = next((role for role in Role if role == replica.role), Role.DECODE)
            found[replica.id] = lacking if left[lacking] > 0 else had
            left[found[replica.id]] -= 1
    return found
