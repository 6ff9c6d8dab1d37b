"""Which adapters the replicas of a deployment are to keep, and which they are to let go. Pure.

An alias says how many replicas load what it names before anybody asks. The rest is loaded where it
is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.adapters.adapter import AdapterRef, BadAdapterRef
from penstock.adapters.placement import Desired, Holder, Kept, place
from penstock.control.state.adapters.registry import AdapterRegistry
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import (
    LIVE,
    KeptAdapter,
    Replica,
    ReplicaId,
    ReplicaState,
)
from penstock.control.state.rollout.deployment import Deployment

_TOLD = frozenset({ReplicaState.STARTING, ReplicaState.READY, ReplicaState.BACKOFF})
"""States of replicas whose agents know them, and that are to serve."""


@dataclass(frozen=True, slots=True)
class KeepOrder:
    """What a replica is to hold, in place of what it was told before."""

    kept: tuple[KeptAdapter, ...] = ()
    dropped: tuple[str, ...] = ()  # that may be asked for no longer


@dataclass(frozen=True, slots=True)
class Residence:
    """What the replicas of a deployment are told, and what finds no place on them."""

    orders: Mapping[ReplicaId, KeepOrder]
    unplaced: Mapping[AdapterRef, int]  # replicas that it lacks


def residence_of(
    view: ClusterView, deployment: Deployment, told: Mapping[ReplicaId, KeepOrder]
) -> Residence:
    """Orders for all that are to serve. `told`: what they were told last, which is on its way into
    them and so is not given to others instead."""
    replicas = [r for r in view.replicas_for(deployment) if r.state in LIVE]
    holders = [_holder(deployment, each, told.get(each.id)) for each in replicas]
    placement = place(_desired(view, deployment), holders)
    orders = {
        each.id: KeepOrder(
            kept=_with_digests(view.adapters, placement.keeps[each.id]),
            dropped=_unknown(view.adapters, each),
        )
        for each in replicas
    }
    return Residence(orders, placement.unplaced)


def orders_of(
    view: ClusterView, told: Mapping[ReplicaId, KeepOrder]
) -> Mapping[ReplicaId, KeepOrder]:
    """What the replicas whose agents know them are to be told; those that hold nothing, and of
    which nothing is wanted or was told, are left out."""
    orders: dict[ReplicaId, KeepOrder] = {}
    for deployment in view.deployments.values():
        if any(
            _is_concerned(view, deployment, each, told) for each in view.replicas_for(deployment)
        ):
            orders.update(residence_of(view, deployment, told).orders)
    return {name: order for name, order in orders.items() if view.replicas[name].state in _TOLD}


def _is_concerned(
    view: ClusterView,
    deployment: Deployment,
    replica: Replica,
    told: Mapping[ReplicaId, KeepOrder],
) -> bool:
    status = replica.status
    wanted = any(True for _ in view.adapters.aliases_of(deployment.spec.name))
    return wanted or replica.id in told or bool(status.adapters or status.failed_adapters)


def _desired(view: ClusterView, deployment: Deployment) -> list[Desired]:
    """What aliases name, and what canaries are to give shares of them."""
    name = deployment.spec.name
    candidates = {
        each.target.alias: AdapterRef.parse(each.candidate)
        for each in view.canaries.shared.get(name, ())
        if each.target.alias
    }
    return [
        Desired(ref, alias.preload, alias.pinned)
        for alias in view.adapters.aliases_of(name)
        for ref in dict.fromkeys((*alias.target.refs, *_one(candidates.get(alias.name))))
    ]


def _one(ref: AdapterRef | None) -> tuple[AdapterRef, ...]:
    return (ref,) if ref else ()


def _holder(deployment: Deployment, replica: Replica, told: KeepOrder | None) -> Holder:
    status = replica.status
    coming = {AdapterRef.parse(each.name) for each in told.kept} if told else set()
    return Holder(
        replica=replica.id,
        # One of an older template tells its own; one that has told nothing yet gets its template's.
        slots=status.adapter_slots or deployment.target.template.adapter_slots,
        holds=frozenset({*_refs(status.adapters), *coming}),
        failed=frozenset(_refs(failure.name for failure in status.failed_adapters)),
    )


def _with_digests(registry: AdapterRegistry, keeps: tuple[Kept, ...]) -> tuple[KeptAdapter, ...]:
    return tuple(
        KeptAdapter(
            name=str(kept.ref),
            digest=registry.versions[kept.ref].manifest.digest,
            pinned=kept.pinned,
        )
        for kept in keeps
        if kept.ref in registry.versions
    )


def _unknown(registry: AdapterRegistry, replica: Replica) -> tuple[str, ...]:
    """What it holds and nobody may ask for any more."""
    known = registry.names()
    unknown = (name for name in replica.status.adapters if name not in known)
    return tuple(sorted(name for name in unknown if name not in registry.unreadable))


def _refs(names: Iterable[str]) -> set[AdapterRef]:
    """Those that are names at all: a replica may tell anything."""
    refs = set()
    for name in names:
        try:
            refs.add(AdapterRef.parse(name))
        except BadAdapterRef:
            continue
    return refs
