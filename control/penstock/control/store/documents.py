"""Values to documents and back: what of the cluster view survives a restart of the head.

Everything that routes follow from is kept, so that a restarted head has routes before the first
agent calls. What heartbeats refresh each second (free memory, when heard) is not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, TypeVar

from penstock.control.declared.codec import Codec
from penstock.control.errors import PenstockError
from penstock.control.state.adapters.registry import AdapterRegistry
from penstock.control.state.applied import Applied
from penstock.control.state.canary.canary import Canary, Counted, canaries_of
from penstock.control.state.cluster import ClusterView, UnknownPolicy
from penstock.control.state.fleet.replica import (
    Node,
    NodeFacts,
    NodeState,
    Replica,
    ReplicaState,
    ReplicaStatus,
)
from penstock.control.state.recording.recordings import Recording, Recordings
from penstock.control.state.rollout.deployment import Departed, Deployment, numbered
from penstock.control.state.rollout.kept_evidence import (
    DeploymentPolicy,
    KeptEvidence,
    TemplateEvidence,
)
from penstock.control.state.rollout.revision import Revision
from penstock.control.state.rollout.template import Template
from penstock.control.state.routing.limits import SelectionPolicy
from penstock.control.state.routing.program import digest_of
from penstock.control.state.shadow.shadows import Shadow, Shadows
from penstock.control.state.tenancy.shares import Shares
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
from penstock.control.store.store import CANARY_COUNTS, PROGRAM, Change, Contents, Document, Key
from penstock.control.store.tenancy.documents import (
    KEYS,
    ONE,
    SHARES,
    TENANTS,
    to_access,
    to_key,
    to_shares,
    to_tenant,
)

SHADOW = "shadow"
RECORDING = "recording"
CANARY = "canary"
APPLIED = "applied"
TEMPLATE_EVIDENCE = "template-evidence"
DEPLOYMENT_POLICY = "deployment-policy"
POLICY = "selection_policy"
TEMPLATES, DEPLOYMENTS = Codec(Template), Codec(Deployment)
SHADOWS, RECORDINGS = Codec(Shadow), Codec(Recording)
CANARIES, COUNTED = Codec(Canary), Codec(Counted)
FOUND, POLICIES = Codec(TemplateEvidence), Codec(DeploymentPolicy)
NODES, REPLICAS, STATUSES = Codec(NodeFacts), Codec(Replica), Codec(ReplicaStatus)
DEPARTED, REVISIONS, RECORDS = Codec(Departed), Codec(Revision), Codec(Applied)
UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, PenstockError)
# What of a replica is as good as unknown after a restart, or stands there by another name.
UNTIL_OBSERVED = (
    *("replica_id", "status", "evidence", "evidence_since", "unreported", "stop_told"),
    "next_start_ms",
)

_Name = TypeVar("_Name")
_Value = TypeVar("_Value")


def changes_between(old: ClusterView, new: ClusterView) -> list[Change]:
    """What to write so that the store says what `new` says."""
    if old is new:
        return []
    return [
        *_kind_changes("deployment", old.deployments, new.deployments, DEPLOYMENTS.document),
        *_kind_changes("node", old.nodes, new.nodes, _from_node),
        *_kind_changes("replica", old.replicas, new.replicas, _from_replica),
        *_kind_changes("departed", old.departed, new.departed, DEPARTED.document),
        *_tenancy_changes(old.tenancy, new.tenancy),
        *_adapter_changes(old.adapters, new.adapters),
        *_kind_changes(SHADOW, old.shadows.named, new.shadows.named, SHADOWS.document),
        *_kind_changes(RECORDING, old.recordings.named, new.recordings.named, RECORDINGS.document),
        *_kind_changes(CANARY, old.canaries.named, new.canaries.named, from_canary),
        *_kind_changes(CANARY_COUNTS, old.canaries.counted, new.canaries.counted, COUNTED.document),
        *_evidence_changes(old.evidence, new.evidence),
        *_kind_changes(APPLIED, old.applied, new.applied, RECORDS.document),
        *_kind_changes(PROGRAM, old.programs, new.programs, lambda text: {"text": text}),
    ]


def _evidence_changes(old: KeptEvidence, new: KeptEvidence) -> Iterator[Change]:
    if old is new:
        return
    yield from _kind_changes(TEMPLATE_EVIDENCE, old.told, new.told, FOUND.document)
    policies = ({ONE: old.policy}, {ONE: new.policy})
    yield from _kind_changes(DEPLOYMENT_POLICY, *policies, POLICIES.document)


def _tenancy(
    read: Callable[[str, Callable[[Document], Any]], list[Any]], *, is_known: bool
) -> Tenancy:
    return Tenancy(
        tenants={t.id: t for t in read("tenant", to_tenant)},
        keys={k.id: k for k in read("api_key", to_key)},
        access=_access(read("access", to_access), known=is_known),
        shares=next(iter(read("shares", to_shares)), Shares()),
    )


def _access(found: list[Access], *, known: bool) -> Access:
    """What was stored; where that cannot be read, nobody gets in without a key."""
    return found[0] if found else Access(keys_required=known, keys_made=known)


def _tenancy_changes(old: Tenancy, new: Tenancy) -> Iterator[Change]:
    if old is new:
        return
    yield from _kind_changes("tenant", old.tenants, new.tenants, TENANTS.document)
    yield from _kind_changes("api_key", old.keys, new.keys, KEYS.document)
    yield from _kind_changes("access", {ONE: old.access}, {ONE: new.access}, asdict)
    yield from _kind_changes("shares", {ONE: old.shares}, {ONE: new.shares}, SHARES.document)


def _adapter_changes(old: AdapterRegistry, new: AdapterRegistry) -> Iterator[Change]:
    if old is new:
        return
    yield from _kind_changes("adapter", old.versions, new.versions, from_version)
    yield from _kind_changes("adapter-removed", old.removed, new.removed, from_removed)
    yield from _kind_changes("alias", old.aliases, new.aliases, from_alias)
    yield from _kind_changes("evidence", old.evidence, new.evidence, from_evidence)
    yield from _kind_changes("adapter-policy", {ONE: old.policy}, {ONE: new.policy}, from_policy)


def view_of(contents: Contents, now: datetime) -> ClusterView:
    """The view as the last head left it; nodes are expected to call from now on.

    A document that cannot be read is skipped, named in the view, and kept in the store.
    """
    unreadable, unknown = list[str](), list[UnknownPolicy]()
    broken: list[Key] = []

    def read(kind: str, decode: Callable[[Document], _Value]) -> list[_Value]:
        values = []
        for key, stored in contents.documents.items():
            if key.kind != kind:
                continue
            try:
                values.append(decode(stored.document))
            except UNREADABLE as error:
                broken.append(key)
                unreadable.append(f"{kind} {key.name!r}: {type(error).__name__}: {error}")
        return values

    deployments = read("deployment", lambda d: _to_deployment(d, unknown))
    return ClusterView(
        deployments={d.spec.name: d for d in deployments},
        nodes={n.id: n for n in read("node", lambda d: _to_node(d, now))},
        replicas={r.id: r for r in read("replica", lambda d: _to_replica(d, now))},
        departed={d.uid: d for d in read("departed", DEPARTED.value)},
        tenancy=_tenancy(read, is_known=Key("access", ONE) in contents.documents),
        adapters=registry_of(read, broken),
        shadows=Shadows({s.spec.name: s for s in read(SHADOW, SHADOWS.value)}),
        recordings=Recordings({r.spec.name: r for r in read(RECORDING, RECORDINGS.value)}),
        canaries=canaries_of(
            read(CANARY, lambda d: _to_canary(d, now)), read(CANARY_COUNTS, COUNTED.value)
        ),
        evidence=_kept_evidence(read, broken),
        applied={each.key: each for each in read(APPLIED, RECORDS.value)},
        programs={digest_of(text): text for text in read(PROGRAM, lambda d: str(d["text"]))},
        unreadable=tuple(unreadable),
        unknown_policies=tuple(unknown),
    )


def _kept_evidence(
    read: Callable[[str, Callable[[Document], Any]], list[Any]], broken: Collection[Key]
) -> KeptEvidence:
    told = {each.id: each for each in read(TEMPLATE_EVIDENCE, FOUND.value)}
    policies = read(DEPLOYMENT_POLICY, POLICIES.value)
    unread = any(key.kind == TEMPLATE_EVIDENCE for key in broken)
    return KeptEvidence(told, policies[0] if policies else DeploymentPolicy(), not unread)


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


def from_canary(canary: Canary) -> Document:
    """What an active one lacks is found anew each second, and is not worth a trail of its own."""
    said = CANARIES.document(canary)
    return said | {"why": ""} if canary.is_active else said


def _to_canary(document: Document, now: datetime) -> Canary:
    """The clock may have been set back meanwhile: no step begins in times to come."""
    canary = CANARIES.value(document)
    since = canary.routed_at
    return replace(canary, routed_at=min(since, now)) if since else canary


def _to_deployment(document: Document, unknown: list[UnknownPolicy]) -> Deployment:
    """A revision that cannot be read any more is forgotten, and not its deployment; a selection
    policy of a newer head is as good as none, and told."""
    kept = [each for each in document.get("revisions", ()) if _is_revision(each)]
    read, policy = {**document, "revisions": kept}, str(document.get(POLICY, ""))
    if policy and policy not in list(SelectionPolicy):
        read[POLICY] = SelectionPolicy.POWER_OF_TWO.value
    deployment = numbered(DEPLOYMENTS.value(read))
    if read.get(POLICY) != document.get(POLICY):
        unknown.append(UnknownPolicy(deployment.spec.name, deployment.generation, policy))
    return deployment


def _is_revision(document: Document) -> bool:
    try:
        REVISIONS.value(document)
    except UNREADABLE:
        return False
    return True


def _from_node(node: Node) -> Document:
    said = NODES.document(node.facts) | {"draining": node.draining, "hand_over": node.hand_over}
    return {name: each for name, each in said.items() if name != "resources"}


def _to_node(document: Document, now: datetime) -> Node:
    node = Node(NODES.value(document), NodeState.EXPECTED, since=now)
    draining, hand_over = (bool(document.get(name)) for name in ("draining", "hand_over"))
    return replace(node, draining=draining, hand_over=hand_over)


def _from_replica(replica: Replica) -> Document:
    status = replica.status
    said = {
        "said_uid": status.deployment_uid,
        "said_digest": status.template_digest,
        "said_generation": status.generation,
    }
    both = {**STATUSES.document(status), **REPLICAS.document(replica), **said}
    return {name: each for name, each in both.items() if name not in UNTIL_OBSERVED}


def _since(state: ReplicaState, stored: datetime, now: datetime) -> datetime:
    """Since when it counts as in this state, though the clock may have been set meanwhile: set
    back, that must not make it younger than nothing; set forward, nobody is late who starts."""
    return now if state is ReplicaState.STARTING else min(stored, now)


def _to_replica(document: Document, now: datetime) -> Replica:
    state = ReplicaState(document["state"])
    said = {
        "replica_id": document["id"],
        "deployment_uid": document["said_uid"],
        "template_digest": document["said_digest"],
        "generation": document["said_generation"],
        # Not known until the agent reports: a drain that it was asked for is asked for again.
        "state": ReplicaState.STARTING if state is ReplicaState.DRAINING else state,
    }
    replica = REPLICAS.value({**document, "status": STATUSES.value({**document, **said})})
    since = _since(state, replica.since, now)
    return replace(replica, since=since, assigned_at=min(replica.assigned_at, now))
