"""Documents of older heads, brought to what `documents.py` reads.

Pure. Format 1 had no uids: a deployment counted its revisions, a replica remembered the revision
that it was made from. A deployment gets a uid here, once; its replicas get it too, and the template
digest where they are of its newest template.

Before gateways let requests wait, a queue of 0 and a deadline of 0 meant "no limit"; 0 places mean
that nobody waits. So who had said 0 gets the default in its place.

Before there were ladders and budgets, who could not be answered was refused, whatever it cost.

Before a tenant's list of models held for fallbacks, no tenant said whether it does.

Before there was a registry, adapters stood in a deployment's template. They become its bindings,
which whoever keeps the registry registers as soon as it can; until then, and where it cannot, they
stay. The template digest stays what it was: nobody's replicas are replaced by a new head.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from penstock.control.state.rollout.deployment import USUAL_ADAPTERS
from penstock.control.state.routing.limits import Limits, Sharing
from penstock.control.store.store import Change, Document, Key, Stored

# Ladders, context and budgets of a deployment that was written before there were any.
NOTHING_INSTEAD: Document = {
    "degrade": {},
    "context": "reject",
    "budget_usd_per_day": 0.0,
    "budget_tokens_per_day": 0,
}

Documents = Mapping[Key, Stored]
Digest = Callable[[Document], str]


def migrations(documents: Documents, digest: Digest) -> list[Change]:
    """What to write so that every document is of today's format; empty where all are.

    `digest` gives the template digest of a deployment's document.
    """
    deployments: dict[str, Document] = {}
    changes: list[Change] = []
    for key, stored in _of_kind(documents, "deployment"):
        document = stored.document
        if "bindings" not in document and "adapters" in document:
            document = _with_bindings(document)
        if "revision" in document:
            document = _deployment(document, digest)
        if "queue_deadline_ms" in document and "selection_policy" not in document:
            document = _with_settings(document)
        if "selection_policy" in document and "degrade" not in document:
            document = {**NOTHING_INSTEAD, **document}
        if document is not stored.document:
            changes.append(Change(key, document))
        deployments[key.name] = document
    for key, stored in _of_kind(documents, "replica"):
        if "revision" in stored.document:
            replica = _replica(stored.document, deployments)
            changes.append(Change(key, replica))
            if stored.document.get("deployment") not in deployments:
                changes.append(_departed(replica))
    for key, stored in _of_kind(documents, "node"):
        if "agent_address" in stored.document and "draining" not in stored.document:
            defaults = {"allows_model_code": False, "draining": False}
            changes.append(Change(key, {**defaults, **stored.document}))
    for key, stored in _of_kind(documents, "tenant"):
        if "degrade" in stored.document and "fallbacks" not in stored.document:
            changes.append(Change(key, {**stored.document, "fallbacks": "listed"}))
    return changes


def _of_kind(documents: Documents, kind: str) -> Iterator[tuple[Key, Stored]]:
    return ((key, stored) for key, stored in sorted(documents.items()) if key.kind == kind)


def _deployment(old: Document, digest: Digest) -> Document:
    new = {key: value for key, value in old.items() if not key.endswith("revision")}
    # Follows from the document, so that a migration that was cut short comes to the same.
    return {
        **new,
        "uid": _uid(f"{old.get('name')} {old.get('created_at')}"),
        "generation": old.get("revision"),
        "template_generation": old.get("template_revision"),
        "template_digest": digest(old),
        "start_limit_ms": 0,
        "load_ms": 0,
    }


def _with_bindings(old: Document) -> Document:
    bindings = list(old["adapters"])
    slots = max(USUAL_ADAPTERS, len(bindings)) if bindings else 0
    new = {key: value for key, value in old.items() if key != "adapters"}
    return {**new, "bindings": bindings, "max_adapters": slots, "max_adapter_rank": 0}


def _with_settings(old: Document) -> Document:
    defaults = {**asdict(Limits()), "selection_policy": Sharing().policy.value, "canary": []}
    without_queue = [key for key in ("max_queued", "queue_deadline_ms") if not old.get(key)]
    return {**defaults, **{key: value for key, value in old.items() if key not in without_queue}}


def _replica(old: Document, deployments: Mapping[str, Document]) -> Document:
    new = {key: value for key, value in old.items() if key != "revision"}
    owner: Mapping[str, Any] = deployments.get(str(old.get("deployment")), {})
    newest = bool(owner) and old.get("revision") == owner["template_generation"]
    return {
        **new,
        "deployment_uid": owner.get("uid") or _uid(f"deleted {old.get('deployment')}"),
        "template_digest": owner["template_digest"] if newest else "",
        "generation": old.get("revision"),
        "devices": [],
        "crashes": 0,
        "ready_at_ms": 0,
        # Its agent has not been told a uid: it goes on naming the revision.
        "said_uid": "",
        "said_digest": "",
        "said_generation": old.get("revision"),
    }


def _departed(replica: Document) -> Change:
    """Format 1 took every replica without a deployment for one of a deleted deployment."""
    uid, name = replica["deployment_uid"], replica["deployment"]
    return Change(Key("departed", uid), {"uid": uid, "name": name, "collected": True, "serial": 0})


def _uid(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
