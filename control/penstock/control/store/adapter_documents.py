"""Adapter versions, aliases and evidence to documents and back."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from penstock.adapters.adapter import AdapterRef, BaseModelFamily
from penstock.adapters.alias import Alias, Move, Target
from penstock.adapters.promotion import Evidence
from penstock.adapters.version import AdapterVersion, Digest, Manifest, StoredFile, VersionState
from penstock.control.store.store import Document


def from_version(version: AdapterVersion) -> Document:
    """A version's document; its digest is told for people, and follows from its files."""
    manifest = version.manifest
    return {
        "ref": str(version.ref),
        "state": version.state.value,
        "digest": manifest.digest,
        "files": [asdict(file) for file in manifest.files],
        "family": manifest.family,
        "rank": manifest.rank,
        "modules": list(manifest.modules),
        "source": manifest.source,
        "registered_at": manifest.registered_at.isoformat(),
        "registered_by": manifest.registered_by,
        "labels": dict(manifest.labels),
    }


def to_version(document: Document) -> AdapterVersion:
    """The inverse of `from_version`. Raises `ValueError` where digest and files disagree."""
    manifest = Manifest(
        files=tuple(StoredFile(**file) for file in document["files"]),
        family=BaseModelFamily(document["family"]),
        rank=document["rank"],
        modules=tuple(document["modules"]),
        source=document["source"],
        registered_at=datetime.fromisoformat(document["registered_at"]),
        registered_by=document["registered_by"],
        labels=document["labels"],
    )
    if manifest.digest != document["digest"]:
        raise ValueError(f"{document['ref']} has files that are not those of its digest")
    ref = AdapterRef.parse(document["ref"])
    return AdapterVersion(ref, manifest, VersionState(document["state"]))


def from_alias(alias: Alias) -> Document:
    """An alias' document, with its moves."""
    return {
        "deployment": alias.deployment,
        "name": alias.name,
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
    return Alias(document["deployment"], document["name"], moves)


def from_evidence(evidence: Evidence) -> Document:
    """What an evaluation found."""
    return {
        "of": evidence.of,
        "family": evidence.family,
        "kind": evidence.kind,
        "passed": evidence.passed,
        "at": evidence.at.isoformat(),
        "against": str(evidence.against) if evidence.against else None,
        "dataset": evidence.dataset,
    }


def to_evidence(document: Document) -> Evidence:
    """The inverse of `from_evidence`."""
    against = document["against"]
    return Evidence(
        of=Digest(document["of"]),
        family=BaseModelFamily(document["family"]),
        kind=document["kind"],
        passed=document["passed"],
        at=datetime.fromisoformat(document["at"]),
        against=AdapterRef.parse(against) if against else None,
        dataset=document["dataset"],
    )


def _from_move(move: Move) -> Document:
    return {
        "shares": [[str(ref), weight] for ref, weight in move.target.shares],
        "at": move.at.isoformat(),
        "by": move.by,
        "undoes": move.undoes,
    }


__all__ = [
    "from_alias",
    "from_evidence",
    "from_version",
    "to_alias",
    "to_evidence",
    "to_version",
]
