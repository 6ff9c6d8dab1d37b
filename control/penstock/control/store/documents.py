"""Values to documents and back: what of the cluster view survives a restart of the head.

Everything that routes follow from is kept, so that a restarted head has routes before the first
agent calls. What heartbeats refresh each second (free memory, when heard) is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields
from datetime import datetime
from typing import TypeVar

from penstock.control.errors import PenstockError
from penstock.control.state.adapters.registry import AdapterRegistry
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import (
    FailedAdapter,
    Node,
    NodeFacts,
    NodeId,
    NodeState,
    Replica,
    ReplicaId,
    ReplicaState,
    ReplicaStatus,
)
from penstock.control.state.recording.recordings import Recordings
from penstock.control.state.rollout.deployment import (
    AdapterBinding,
    Departed,
    Deployment,
    DeploymentName,
    DeploymentSpec,
    Template,
)
from penstock.control.state.routing.degrading import Context, Degrading, Ladder
from penstock.control.state.routing.limits import Canary, Limits, SelectionPolicy, Sharing
from penstock.control.state.shadow.shadows import Shadows
from penstock.control.state.tenancy.prices import Prices
from penstock.control.state.tenancy.shares import Shares
from penstock.control.state.tenancy.spend import Budgets
from penstock.control.state.tenancy.tenancy import Tenancy
from penstock.control.state.tenancy.tenants import Access
from penstock.control.store.adapters.documents import (
    from_alias,
    from_evidence,
    from_policy,
    from_removed,
    from_version,
    registry_of,
)
from penstock.control.store.recording.documents import from_recording, to_recording
from penstock.control.store.shadow.documents import from_shadow, to_shadow
from penstock.control.store.store import Change, Contents, Document, Key
from penstock.control.store.tenancy.documents import (
    ONE,
    from_key,
    from_shares,
    from_tenant,
    to_access,
    to_key,
    to_shares,
    to_tenant,
)

SHADOW = "shadow"
RECORDING = "recording"

_Name = TypeVar("_Name")
_Value = TypeVar("_Value")


def changes_between(old: ClusterView, new: ClusterView) -> list[Change]:
    """What to write so that the store says what `new` says."""
    return [
        *_kind_changes("deployment", old.deployments, new.deployments, _from_deployment),
        *_kind_changes("node", old.nodes, new.nodes, _from_node),
        *_kind_changes("replica", old.replicas, new.replicas, _from_replica),
        *_kind_changes("departed", old.departed, new.departed, asdict),
        *_tenancy_changes(old.tenancy, new.tenancy),
        *_adapter_changes(old.adapters, new.adapters),
        *_kind_changes(SHADOW, old.shadows.named, new.shadows.named, from_shadow),
        *_kind_changes(RECORDING, old.recordings.named, new.recordings.named, from_recording),
    ]


def _access(found: list[Access], *, known: bool) -> Access:
    """What was stored; where that cannot be read, nobody gets in without a key."""
    return found[0] if found else Access(keys_required=known, keys_made=known)


def _tenancy_changes(old: Tenancy, new: Tenancy) -> Iterator[Change]:
    yield from _kind_changes("tenant", old.tenants, new.tenants, from_tenant)
    yield from _kind_changes("api_key", old.keys, new.keys, from_key)
    yield from _kind_changes("access", {ONE: old.access}, {ONE: new.access}, asdict)
    yield from _kind_changes("shares", {ONE: old.shares}, {ONE: new.shares}, from_shares)


def _adapter_changes(old: AdapterRegistry, new: AdapterRegistry) -> Iterator[Change]:
    yield from _kind_changes("adapter", old.versions, new.versions, from_version)
    yield from _kind_changes("adapter-removed", old.removed, new.removed, from_removed)
    yield from _kind_changes("alias", old.aliases, new.aliases, from_alias)
    yield from _kind_changes("evidence", old.evidence, new.evidence, from_evidence)
    yield from _kind_changes("adapter-policy", {ONE: old.policy}, {ONE: new.policy}, from_policy)


def view_of(contents: Contents, now: datetime) -> ClusterView:
    """The view as the last head left it; nodes are expected to call from now on.

    A document that cannot be read is skipped, named in the view, and kept in the store.
    """
    unreadable: list[str] = []
    broken: list[Key] = []

    def read(kind: str, decode: Callable[[Document], _Value]) -> list[_Value]:
        values = []
        for key, stored in contents.documents.items():
            if key.kind != kind:
                continue
            try:
                values.append(decode(stored.document))
            except (KeyError, TypeError, ValueError, AttributeError, PenstockError) as error:
                broken.append(key)
                unreadable.append(f"{kind} {key.name!r}: {type(error).__name__}: {error}")
        return values

    deployments = read("deployment", _to_deployment)
    nodes = read("node", lambda d: _to_node(d, now))
    replicas = read("replica", lambda d: _to_replica(d, now))
    departed = read("departed", lambda d: Departed(**d))
    tenancy = Tenancy(
        tenants={t.id: t for t in read("tenant", to_tenant)},
        keys={k.id: k for k in read("api_key", to_key)},
        access=_access(read("access", to_access), known=Key("access", ONE) in contents.documents),
        shares=next(iter(read("shares", to_shares)), Shares()),
    )
    return ClusterView(
        deployments={d.spec.name: d for d in deployments},
        nodes={n.id: n for n in nodes},
        replicas={r.id: r for r in replicas},
        departed={d.uid: d for d in departed},
        tenancy=tenancy,
        adapters=registry_of(read, broken),
        shadows=Shadows({s.spec.name: s for s in read(SHADOW, to_shadow)}),
        recordings=Recordings({r.spec.name: r for r in read(RECORDING, to_recording)}),
        unreadable=tuple(unreadable),
    )


def _kind_changes(
    kind: str,
    old: Mapping[_Name, _Value],
    new: Mapping[_Name, _Value],
    encode: Callable[[_Value], Document],
) -> Iterator[Change]:
    if old is new:
        return
    for name, value in new.items():
        before = old.get(name)
        if before is value:
            continue
        document = encode(value)
        if before is None or encode(before) != document:
            yield Change(Key(kind, str(name)), document)
    for name in old:
        if name not in new:
            yield Change(Key(kind, str(name)), None)


def _from_deployment(deployment: Deployment) -> Document:
    spec, template = deployment.spec, deployment.spec.template
    return {
        "name": spec.name,
        "engine": template.engine,
        "model": template.model,
        "engine_args": dict(template.engine_args),
        "max_adapters": template.max_adapters,
        "max_adapter_rank": template.max_adapter_rank,
        "replicas": spec.replicas,
        **asdict(spec.limits),
        "selection_policy": spec.sharing.policy.value,
        "canary": [asdict(each) for each in spec.sharing.canary],
        "degrade": {each.reason: list(each.rungs) for each in spec.degrading.ladders},
        "context": spec.degrading.context.value,
        "budget_usd_per_day": spec.budgets.usd_per_day,
        "budget_tokens_per_day": spec.budgets.tokens_per_day,
        **asdict(spec.prices),
        "labels": dict(spec.labels),
        "start_limit_ms": spec.start_limit_ms,
        "uid": deployment.uid,
        "generation": deployment.generation,
        "template_digest": deployment.template_digest,
        "template_generation": deployment.template_generation,
        "created_at": deployment.created_at.isoformat(),
        "updated_at": deployment.updated_at.isoformat(),
        "trouble": deployment.trouble,
        "tries": deployment.tries,
        "load_ms": deployment.load_ms,
        "model_generation": deployment.model_generation,
        "bindings": [asdict(binding) for binding in deployment.bindings],
    }


def _to_template(document: Document) -> Template:
    return Template(
        engine=document["engine"],
        model=document["model"],
        engine_args=tuple(sorted(document["engine_args"].items())),
        max_adapters=document["max_adapters"],
        max_adapter_rank=document["max_adapter_rank"],
    )


def _to_degrading(document: Document) -> Degrading:
    ladders = (Ladder(reason, tuple(rungs)) for reason, rungs in document["degrade"].items())
    return Degrading(
        tuple(sorted(ladders, key=lambda each: each.reason)), Context(document["context"])
    )


def _to_deployment(document: Document) -> Deployment:
    limits = Limits(**{each.name: document[each.name] for each in fields(Limits)})
    canary = tuple(Canary(**each) for each in document["canary"])
    spec = DeploymentSpec(
        name=DeploymentName(document["name"]),
        template=_to_template(document),
        replicas=document["replicas"],
        limits=limits,
        sharing=Sharing(SelectionPolicy(document["selection_policy"]), canary),
        degrading=_to_degrading(document),
        budgets=Budgets(document["budget_usd_per_day"], document["budget_tokens_per_day"]),
        prices=Prices(**{f.name: document.get(f.name, f.default) for f in fields(Prices)}),
        labels=tuple(sorted(document["labels"].items())),
        start_limit_ms=document["start_limit_ms"],
    )
    return Deployment(
        spec=spec,
        uid=document["uid"],
        generation=document["generation"],
        template_digest=document["template_digest"],
        template_generation=document["template_generation"],
        created_at=datetime.fromisoformat(document["created_at"]),
        updated_at=datetime.fromisoformat(document["updated_at"]),
        trouble=document["trouble"],
        tries=document.get("tries", 0),  # older heads wrote none
        load_ms=document["load_ms"],
        model_generation=document.get("model_generation", 0),  # older heads wrote none
        bindings=tuple(AdapterBinding(**binding) for binding in document["bindings"]),
    )


def _from_node(node: Node) -> Document:
    facts = node.facts
    return {
        "id": facts.id,
        "agent_address": facts.agent_address,
        "host": facts.host,
        "zone": facts.zone,
        "pid": facts.pid,
        "allows_model_code": facts.allows_model_code,
        "instance": facts.instance,
        "draining": node.draining,
    }


def _to_node(document: Document, now: datetime) -> Node:
    facts = NodeFacts(
        id=NodeId(document["id"]),
        agent_address=document["agent_address"],
        host=document["host"],
        zone=document["zone"],
        pid=document["pid"],
        allows_model_code=document["allows_model_code"],
        instance=document.get("instance", ""),  # older heads wrote none
    )
    return Node(facts, NodeState.EXPECTED, since=now, draining=document["draining"])


def _from_replica(replica: Replica) -> Document:
    status = replica.status
    return {
        "id": replica.id,
        "deployment": replica.deployment,
        "node": replica.node,
        "instance": replica.instance,
        "deployment_uid": replica.deployment_uid,
        "template_digest": replica.template_digest,
        "generation": replica.generation,
        "devices": list(replica.devices),
        "crashes": replica.crashes,
        "tries": replica.tries,
        "state": replica.state.value,
        "since": replica.since.isoformat(),
        "assigned_at": replica.assigned_at.isoformat(),
        "address": status.address,
        "pid": status.pid,
        "restarts": status.restarts,
        "exit_code": status.exit_code,
        "last_error": status.last_error,
        "started_at_ms": status.started_at_ms,
        "log_path": status.log_path,
        "max_model_len": status.max_model_len,
        "capacity": status.capacity,
        "endpoints": list(status.endpoints),
        "ready_at_ms": status.ready_at_ms,
        "own_token": status.own_token,
        "adapters": list(status.adapters),
        "adapter_digests": list(status.adapter_digests),
        "failed_adapters": [asdict(each) for each in status.failed_adapters],
        "adapter_slots": status.adapter_slots,
        "max_adapter_rank": status.max_adapter_rank,
        "said_uid": status.deployment_uid,
        "said_digest": status.template_digest,
        "said_generation": status.generation,
    }


def _since(state: ReplicaState, stored: datetime, now: datetime) -> datetime:
    """Since when it counts as in this state, though the clock may have been set meanwhile: set
    back, that must not make it younger than nothing; set forward, nobody is late who starts."""
    return now if state is ReplicaState.STARTING else min(stored, now)


def _to_status(document: Document, state: ReplicaState) -> ReplicaStatus:
    return ReplicaStatus(
        replica_id=ReplicaId(document["id"]),
        deployment=DeploymentName(document["deployment"]),
        deployment_uid=document["said_uid"],
        template_digest=document["said_digest"],
        generation=document["said_generation"],
        # Not known until the agent reports: a drain that it was asked for is asked for again.
        state=ReplicaState.STARTING if state is ReplicaState.DRAINING else state,
        address=document["address"],
        pid=document["pid"],
        restarts=document["restarts"],
        exit_code=document["exit_code"],
        last_error=document["last_error"],
        started_at_ms=document["started_at_ms"],
        log_path=document["log_path"],
        max_model_len=document["max_model_len"],
        capacity=document["capacity"],
        # Older heads wrote none of what is looked for with `get`.
        endpoints=tuple(document.get("endpoints", ())),
        adapters=tuple(document["adapters"]),
        adapter_digests=tuple(document.get("adapter_digests", ())),
        failed_adapters=tuple(FailedAdapter(**f) for f in document.get("failed_adapters", ())),
        adapter_slots=document.get("adapter_slots", 0),
        max_adapter_rank=document.get("max_adapter_rank", 0),
        devices=tuple(document["devices"]),
        ready_at_ms=document["ready_at_ms"],
        own_token=document.get("own_token", False),
    )


def _to_replica(document: Document, now: datetime) -> Replica:
    state = ReplicaState(document["state"])
    status = _to_status(document, state)
    return Replica(
        id=status.replica_id,
        deployment=status.deployment,
        deployment_uid=document["deployment_uid"],
        template_digest=document["template_digest"],
        generation=document["generation"],
        node=NodeId(document["node"]),
        instance=document.get("instance", ""),
        devices=tuple(document["devices"]),
        state=state,
        since=_since(state, datetime.fromisoformat(document["since"]), now),
        assigned_at=min(datetime.fromisoformat(document["assigned_at"]), now),
        crashes=document["crashes"],
        tries=document.get("tries", 0),
        status=status,
    )
