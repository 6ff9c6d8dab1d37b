"""Adapter versions, aliases and evidence to documents and back."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Any

from penstock.adapters.adapter import AdapterRef
from penstock.adapters.alias import Alias, Move, Target
from penstock.adapters.promotion import Evidence, PromotionPolicy
from penstock.adapters.version import AdapterVersion, Digest, Manifest, VersionState
from penstock.control.declared.codec import Codec
from penstock.control.state.adapters.registry import AdapterRegistry, Removed, StoredEvidence
from penstock.control.store.store import Document, Key

MANIFESTS, EVIDENCE = Codec(Manifest), Codec(Evidence)


def from_version(version: AdapterVersion) -> Document:
    """A version's document; its digest is told for people, and follows from its files."""
    own = {"ref": str(version.ref), "state": version.state.value, "digest": version.manifest.digest}
    return {**own, **MANIFESTS.document(version.manifest)}


def to_version(document: Document) -> AdapterVersion:
    """The inverse of `from_version`. Raises `ValueError` where digest and files disagree."""
    manifest = MANIFESTS.value(document)
    if manifest.digest != document["digest"]:
        raise ValueError(f"{document['ref']} has files that are not those of its digest")
    ref = AdapterRef.parse(document["ref"])
    return AdapterVersion(ref, manifest, VersionState(document["state"]))


def from_alias(alias: Alias) -> Document:
    """An alias' document, with its moves."""
    return {
        "deployment": alias.deployment,
        "name": alias.name,
        "preload": alias.preload,
        "pinned": alias.pinned,
        "moves": [_from_move(move) for move in alias.moves],
    }


def to_alias(document: Document) -> Alias:
    """The inverse of `from_alias`."""
    moves = tuple(
        Move(
            target=Target(tuple((AdapterRef.parse(ref), weight) for ref, weight in move["shares"])),
            at=datetime.fromisoformat(move["at"]),
            by=move["by"],
            undoes=move["undoes"],
        )
        for move in document["moves"]
    )
    return Alias(
        document["deployment"],
        document["name"],
        moves,
        preload=document["preload"],
        pinned=document["pinned"],
    )


def from_removed(removed: Removed) -> Document:
    """A name that is not given again."""
    return {"ref": str(removed.ref), "digest": removed.digest}


def to_removed(document: Document) -> Removed:
    """The inverse of `from_removed`."""
    return Removed(AdapterRef.parse(document["ref"]), Digest(document["digest"]))


def from_evidence(told: StoredEvidence) -> Document:
    """What an evaluation found of a version."""
    against = told.evidence.against
    own = {"id": told.id, "ref": str(told.ref), "report": told.report}
    named = {"against": str(against) if against else None}
    return {**own, **EVIDENCE.document(told.evidence), **named}


def to_evidence(document: Document) -> StoredEvidence:
    """The inverse of `from_evidence`."""
    against = document["against"]
    named = {"against": AdapterRef.parse(against) if against else None}
    evidence = EVIDENCE.value({**document, **named})
    ref = AdapterRef.parse(document["ref"])
    return StoredEvidence(document["id"], ref, evidence, document["report"])


def from_policy(policy: PromotionPolicy) -> Document:
    """What a promotion asks for."""
    age = policy.not_older_than
    return {
        "evidence_for": sorted(policy.evidence_for),
        "kind": policy.kind,
        "not_older_than_s": age.total_seconds() if age is not None else None,
    }


def to_policy(document: Document) -> PromotionPolicy:
    """The inverse of `from_policy`."""
    age = document["not_older_than_s"]
    return PromotionPolicy(
        evidence_for=frozenset(VersionState(state) for state in document["evidence_for"]),
        kind=document["kind"],
        not_older_than=timedelta(seconds=age) if age is not None else None,
    )


KINDS = ("adapter", "adapter-removed", "alias", "evidence", "adapter-policy")


def registry_of(
    read: Callable[[str, Callable[[Document], Any]], list[Any]], broken: Collection[Key]
) -> AdapterRegistry:
    """The registry of the documents that can be read; `read` gives those of a kind, and notes in
    `broken` those that it could not read."""
    policies = read("adapter-policy", to_policy)
    return AdapterRegistry(
        versions={version.ref: version for version in read("adapter", to_version)},
        removed={each.ref: each for each in read("adapter-removed", to_removed)},
        aliases={alias.full_name: alias for alias in read("alias", to_alias)},
        evidence={each.id: each for each in read("evidence", to_evidence)},
        policy=policies[0] if policies else PromotionPolicy(),
        unreadable=frozenset(key.name for key in broken if key.kind in KINDS),
    )


def _from_move(move: Move) -> Document:
    return {
        "shares": [[str(ref), weight] for ref, weight in move.target.shares],
        "at": move.at.isoformat(),
        "by": move.by,
        "undoes": move.undoes,
    }
